/**
 * priorveil: answer a campaign without giving the answer away. For browsers and Node, with no dependencies.
 *
 * A plan is a public document with integers wherever a sampler or a certificate looks. This module checks that it is what its
 * id says, proves its certificate again in exact arithmetic, and samples exactly the law that was proven, from the same
 * 64-bit words in the same order as the Python package: the same plan, bytes and value give the same report.
 */

export { readCampaign } from "./campaigns.js";
export { Client, DEFAULT_LIMIT } from "./client.js";
export { canonical, contentId } from "./documents.js";
export { BudgetExceeded, NotSent, PriorveilError, ReportRefused } from "./errors.js";
export { expBounds } from "./exact.js";
export { FileStorage } from "./file_storage.js";
export { readForm } from "./forms.js";
export { readPlan } from "./plans.js";
export { NOT_ASKED } from "./questions/question.js";
export { freshId, systemWords, wordsFrom } from "./randomness.js";
export { readNumber } from "./values.js";
