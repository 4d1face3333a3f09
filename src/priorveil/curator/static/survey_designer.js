// The curator designs a survey: the request, and what the page shows meanwhile.

import { ask } from "/static/curator.js";
import { el } from "/static/dom.js";

/** Asks for one design at a time; `element` says that it takes a while, and `check` is the button that asks. */
export class SurveyDesigner {
  /** Cancels the request that is under way. @type {AbortController | null} */
  #request = null;
  #check;
  #say;

  element = el(
    "div",
    { id: "designing", class: "designing", hidden: true },
    el("p", {}, "Designing the survey. This takes some seconds."),
    el("progress", { "aria-label": "Designing" }),
    el("button", { type: "button", class: "plain", id: "cancel", onclick: () => this.cancel() }, "Cancel"),
  );

  /** @param {HTMLButtonElement} check @param {(text: string) => void} say */
  constructor(check, say) {
    this.#check = check;
    this.#say = say;
  }

  cancel() {
    this.#request?.abort();
  }

  /**
   * The checked survey; null if this was cancelled.
   *
   * @param {BodyInit} body
   * @param {string} type
   * @param {string} people
   */
  async design(body, type, people) {
    this.cancel();
    const mine = new AbortController();
    this.#request = mine;
    this.#showWaiting(true);
    this.#say("Designing the survey.");
    try {
      const options = { method: "POST", body, headers: { "content-type": type }, signal: mine.signal };
      const response = await ask(`/surveys?people=${encodeURIComponent(people)}`, options);
      return await response.json();
    } catch (error) {
      if (error.name !== "AbortError") throw error;
      if (mine === this.#request) this.#say("The check was cancelled. Nothing is lost.");
      return null;
    } finally {
      if (mine === this.#request) this.#showWaiting(false);
    }
  }

  #showWaiting(/** @type {boolean} */ on) {
    this.#check.disabled = on;
    this.element.hidden = !on;
  }
}
