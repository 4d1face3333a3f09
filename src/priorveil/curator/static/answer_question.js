// One question at a time.

import { pageOf } from "/static/answer_kinds.js";
import {
  actions,
  hasText,
  own,
  plainButton,
  problemPlace,
  put,
  quiet,
  say,
  showProgress,
  submit,
} from "/static/answer_page.js";
import { el } from "/static/dom.js";
/** @import { Question } from "/static/priorveil.js" */
/** @import { Interview } from "/static/interview.js" */

/**
 * @param {Interview} interview
 * @param {Question} question
 * @param {(entry: HTMLFormElement) => void} next
 * @param {() => void} back
 */
export function drawQuestion(interview, question, next, back) {
  const onsubmit = (/** @type {Event} */ event) => {
    event.preventDefault();
    next(/** @type {HTMLFormElement} */ (event.target));
  };
  put(
    own(question.text),
    hasText(question.hint) && el("p", { class: "hint", id: "question-hint" }, own(question.hint)),
    !interview.isReported(question) && quiet("noOwnReport"),
    el(
      "form",
      { onsubmit, autocomplete: "off", novalidate: true },
      problemPlace("answer"),
      pageOf(question).field(interview, question),
      actions(submit("continue"), plainButton(say("back"), back)),
    ),
  );
  showProgress(interview.questions.indexOf(question), interview.questions.length);
}
