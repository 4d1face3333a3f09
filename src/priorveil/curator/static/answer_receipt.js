// What became of a report: the receipt and its withdrawal, and everything that can go wrong.

import { actions, announce, fold, own, paragraph, plainButton, put, say, speak, warning } from "/static/answer_page.js";
import { closeButton, openDialog } from "/static/dialogs.js";
import { el } from "/static/dom.js";
import { failure, whyRefused } from "/static/outcomes.js";
import { NotSent, PriorveilError, ReportRefused } from "/static/priorveil.js";
/** @import { Campaign, Leaving, Remembered } from "/static/priorveil.js" */
/** @import { Status } from "/static/outcomes.js" */

/** @typedef {Leaving & Partial<Remembered>} Sent */

/**
 * The receipt, once the report has arrived; only now is it shown.
 *
 * @param {Sent} report
 * @param {boolean} before whether it had arrived before this visit
 * @param {() => Promise<void>} withdraw shows the next step, or raises an error
 * @param {(error: unknown) => void} showBroken
 */
export function drawThanks(report, before, withdraw, showBroken) {
  const sent = fold(
    say("whatWasSent"),
    exactText(report, { id: "sent", "aria-label": say("exactText") }),
    paragraph("everythingExplained"),
  );
  sent.open = true; // as promised before it was sent
  put(
    say(before ? "answeredTitle" : "thanksTitle"),
    paragraph(before ? "answered" : "thanks"),
    paragraph("remembersSent"),
    sent,
    withdrawal(report, withdraw, showBroken),
  );
}

/** The exact text that was sent. @param {Sent} report @param {Record<string, string>} attributes */
const exactText = ({ report_id, form, report }, attributes) =>
  el("pre", { tabindex: "0", dir: "ltr", ...attributes }, JSON.stringify({ report_id, form, report }));

/**
 * The receipt: the id of the submission, with which it can be withdrawn.
 *
 * @param {Sent} report
 * @param {() => Promise<void>} withdraw
 * @param {(error: unknown) => void} showBroken
 */
function withdrawal(report, withdraw, showBroken) {
  const problem = el("div", {}, report.withdrawn && warning(say("withdrawFailed"))); // remembered, and not confirmed by the server
  const tryWithdrawing = async () => {
    button.disabled = true;
    try {
      await withdraw();
    } catch (error) {
      const published = error instanceof ReportRefused && error.reason.endsWith(" 409");
      if (!published && !(error instanceof NotSent)) return showBroken(error);
      button.disabled = published;
      problem.replaceChildren(warning(say(published ? "withdrawTooLate" : "withdrawFailed")));
    }
  };
  const confirm = () => {
    const yes = () => {
      dialog.close(); // before the page changes, as the focus goes back to the button
      tryWithdrawing();
    };
    const dialog = openDialog(say("withdrawTitle"), [
      paragraph("withdrawAsk"),
      actions(
        el("button", { type: "button", onclick: yes }, say("withdrawYes")),
        closeButton(say("withdrawNo"), { class: "plain", autofocus: true }),
      ),
    ]);
  };
  const button = plainButton(say("withdraw"), confirm);
  const receipt = fold(
    say("receiptTitle"),
    paragraph("receipt", { id: el("code", { id: "receipt" }, report.report_id) }),
    paragraph("receiptExplained"),
    problem,
    actions(button),
  );
  receipt.open = report.withdrawn === true;
  return receipt;
}

export function drawWithdrawn() {
  put(say("withdrawnTitle"), paragraph("withdrawn"), paragraph("withdrawnRemembered"));
}

/** A report that is kept, and can be sent again. @param {string} why @param {(button: HTMLButtonElement) => void} again */
export function drawNotSent(why, again) {
  const button = el("button", { type: "button", onclick: () => again(button) }, say("tryAgain"));
  put(say("notSentTitle"), warning(say(why), " ", say("keptHere")), actions(button));
}

/** A report that was refused for good. @param {string} reason */
export function drawRefused(reason) {
  const key = whyRefused(reason);
  put(
    say("refusedTitle"),
    warning(key === null ? say("refusedOther", { reason }) : say(key)),
    paragraph("nothingCounted"),
  );
}

/** A survey that takes no reports now. @param {Campaign} campaign @param {Status} status @param {boolean} isKept */
export function drawShut(campaign, status, isKept) {
  const opens = campaign.opens && speak.moment(campaign.opens);
  const end = { closed: "closed", full: "refusedFull" }[status.state];
  const when = end ? paragraph(end) : opens ? paragraph("opensAt", { time: opens }) : paragraph("notYetOpen");
  const results =
    status.published && el("p", {}, el("a", { href: `/published/${campaign.id}` }, say("publishedResults")));
  put(own(campaign.title), when, results, isKept && paragraph("keptForLater"));
}

/** @param {() => void} again */
export function drawPreviewEnd(again) {
  put(say("previewEnd"), actions(plainButton(say("again"), again)));
}

/** What went wrong. `asked` is the LDP level of one answer to the survey. @param {any} error @param {number} asked */
export function drawBroken(error, asked) {
  const why = fold(
    say("whyFold"),
    el("p", { lang: "en", dir: "ltr" }, error instanceof PriorveilError ? error.message : String(error)),
  );
  const [title, text, advice] = failure(error, asked);
  put(say(title), warning(say(text)), advice && paragraph(advice), !(error instanceof NotSent) && why);
}

/** Show that a report is on its way. @param {HTMLButtonElement} button */
export function showSending(button) {
  button.disabled = true;
  button.textContent = say("sending");
  announce(say("sending"));
}
