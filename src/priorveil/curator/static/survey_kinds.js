// The kinds of questions, while a survey is written: each has its document and its part of the form.

import { CHOICES } from "/static/survey_choices.js";
import { NUMBERS } from "/static/survey_number.js";

export const KINDS = { ...CHOICES, ...NUMBERS };

/** The kind of a question that is written. */
export const kindOf = (question) => KINDS[question.kind];

/** The options of a question, with their codes. */
export const optionsOf = (question, languages) => kindOf(question).options(question, languages);
