// Everything that will be sent, and what it reveals. The report is drawn when it is sent, so that nobody can try until they like it.

import {
  fold,
  inCampaignLanguage,
  line,
  own,
  ownText,
  paragraph,
  phrase,
  plainButton,
  put,
  quiet,
  say,
  speak,
  warning,
} from "/static/answer_page.js";
import { pageOf } from "/static/answer_kinds.js";
import { crowd } from "/static/answer_figures.js";
import { exposure, promises, reportsOf, reportsSent, showsCrowd } from "/static/disclosure.js";
import { el } from "/static/dom.js";
/** @import { Part, Question } from "/static/priorveil.js" */
/** @import { Interview } from "/static/interview.js" */

/**
 * What may be sent, and what that reveals.
 *
 * @param {Interview} interview
 * @param {boolean} isPreview
 * @param {{ send: (button: HTMLButtonElement) => void, change: (question: Question) => void, back: () => void }} go
 */
export function drawReview(interview, isPreview, go) {
  const { form, parts, questions } = interview;
  const send = el("button", { type: "button", onclick: () => go.send(send) }, say("send"));
  const figures = parts.map((part) => showsCrowd(interview, part) && crowd(interview, part));
  const alone = form.parts.length === 1;
  put(
    say("reviewTitle"),
    el("h2", {}, say("answersStay")),
    el("dl", { class: "answers" }, ...questions.map((question) => answerLine(interview, question, go.change))),
    el("h2", {}, say("whatIsSent")),
    leaving(interview, isPreview),
    el("h2", {}, say("whatItTells")),
    promise(interview),
    alone && figures[0],
    el("div", { class: "actions edge" }, send, plainButton(say("back"), go.back)),
    !alone &&
      figures.map((figure, i) => figure && fold(aloneTitle(interview, parts[i]), figure, quiet("notThePromise"))),
    details(interview),
  );
}

/** @param {Interview} interview @param {Part} part */
const aloneTitle = (interview, part) =>
  el("span", {}, ...phrase("reportAlone", { question: inCampaignLanguage(partTitle(interview, part)) }));

/**
 * A question, its answer, and a button to change it.
 *
 * @param {Interview} interview
 * @param {Question} question
 * @param {(question: Question) => void} change
 */
function answerLine(interview, question, change) {
  const button = plainButton(say("change"), () => change(question), {
    "aria-label": say("changeAnswer", { question: ownText(question.text) }),
  });
  const content = interview.asked.includes(question)
    ? [el("span", {}, pageOf(question).answer(interview, question)), button]
    : [el("em", {}, say("notAsked"))];
  return line(own(question.text), ...content, !interview.isReported(question) && el("small", {}, say("toldByOthers")));
}

/**
 * The texts of a part's questions; if it is about some options of "tick all that apply", with those.
 *
 * @param {Interview} interview
 * @param {Part} part
 */
function partTitle(interview, part) {
  const texts = interview.questionsOf(part).map((question) => {
    const options = question.options.filter(({ code }) => part.attributes.includes(`${question.name}/${code}`));
    const some = options.length > 0 && options.length < question.options.length;
    return some
      ? `${ownText(question.text)} ${options.map(({ text }) => ownText(text)).join(", ")}`
      : ownText(question.text);
  });
  return texts.join(" + ");
}

/** Everything that leaves this device, in words. @param {Interview} interview @param {boolean} isPreview */
function leaving(interview, isPreview) {
  const { campaign, cohort, form, parts, questions, asked } = interview;
  const scrambled = parts.map((part, i) => {
    const { length } = reportsOf(part.plan);
    return line(
      inCampaignLanguage(partTitle(interview, part)),
      el("em", {}, length > 0 ? say("oneOfCodes", { count: speak.number(length) }) : say("someCode")),
      !isPreview && form.slots[i].drawn && el("small", {}, " ", say("drawnQuestion")),
    );
  });
  return [
    paragraph(reportsSent(interview, isPreview)),
    el(
      "dl",
      { class: "leaving" },
      ...scrambled,
      campaign.cohorts.length > 1 &&
        line(say("yourGroup"), el("bdi", {}, cohort), el("small", {}, " ", say("sentAsItIs"))),
      line(say("randomNumber"), say("randomNumberWhy")),
      campaign.admission === "invitation" && line(say("invitationCode"), say("invitationWhy")),
    ),
    questions.some((question) => !asked.includes(question)) && paragraph("skippedToo"),
  ];
}

/** What the whole submission reveals about any answer: under the prior, and under any prior. @param {Interview} interview */
function promise(interview) {
  const exposed = exposure(interview.form);
  if (exposed) return warning(say(exposed));
  const { texts, weak } = promises(interview);
  return el(
    "div",
    { class: "promise" },
    texts.map(([key, level]) => paragraph(key, { factor: el("strong", {}, speak.factor(level)) })),
    weak ? warning(say("weakScrambling")) : paragraph("provesNothing"),
  );
}

/** @param {Interview} interview */
function details(interview) {
  const { campaign, cohort, form } = interview;
  const { lip, ldp } = campaign.promise[/** @type {string} */ (cohort)];
  const values = { lip: speak.level(lip), ldp: speak.level(ldp) };
  return fold(
    say("curious"),
    paragraph("checked"),
    paragraph(promises(interview).levels, values),
    paragraph("campaignId", { id: el("code", {}, campaign.id) }),
    paragraph("formId", { id: el("code", {}, form.id) }),
  );
}
