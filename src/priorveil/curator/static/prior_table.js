// Tables of what is known: read in the browser, so that a table of people never leaves it. Only its counts do.

/** @typedef {{ name: string, columns: string[], rows: string[][] }} Table */
/** @typedef {{ countsPeople: boolean, entry: (text: string, known: (text: string) => string) => string }} Kind */
/** @typedef {{ name: string, kind: Kind, codes: Map<string, string> }} Asked A question, with its codes by what may be written. */

const DELIMITERS = [",", ";", "\t"];
const WEIGHTS = ["share", "count"];

/** The cells of a CSV, row by row; its delimiter is a comma, a semicolon or a tab. @param {string} text */
function readCells(text) {
  const head = text.split(/\r?\n/, 1)[0];
  const delimiter = DELIMITERS.toSorted((a, b) => head.split(b).length - head.split(a).length)[0];
  /** @type {string[][]} */
  const rows = [[]];
  const lines = text.endsWith("\n") ? text : `${text}\n`;
  const cell = new RegExp(
    `("(?:[^"]|"")*"|[^"${delimiter}\\r\\n][^${delimiter}\\r\\n]*|)(${delimiter}|\\r?\\n|\\r)`,
    "gy",
  );
  while (cell.lastIndex < lines.length) {
    const [, content, end] = cell.exec(lines) ?? [];
    if (content === undefined) throw new Error(`Line ${rows.length} has a quotation mark in the wrong place.`);
    rows[rows.length - 1].push((content.startsWith('"') ? content.slice(1, -1).replaceAll('""', '"') : content).trim());
    if (end !== delimiter) rows.push([]);
  }
  return rows.filter((row) => row.some((entry) => entry !== ""));
}

/**
 * A table from the text of a file: its columns and its rows.
 *
 * @param {string} name
 * @param {string} text
 * @returns {Table}
 */
export function readTable(name, text) {
  const [columns, ...rows] = readCells(text.replace(/^\uFEFF/, ""));
  if (rows.length === 0) throw new Error("This table has no rows below its header. Choose a CSV file.");
  const wrong = rows.findIndex((row) => row.length !== columns.length);
  if (wrong >= 0) throw new Error(`Row ${wrong + 1} does not have as many cells as the header.`);
  if (new Set(columns).size < columns.length) throw new Error("Two columns have the same name.");
  return { name, columns, rows };
}

/** @param {Table} table */
const weightOf = ({ columns }) => WEIGHTS.filter((name) => columns.includes(name));

/** Whether a table has a row for each person. @param {Table} table */
export const isOfPeople = (table) => weightOf(table).length === 0;
/** @param {Table} table */
export const hasShares = ({ columns }) => columns.includes("share");

/**
 * Where a table says what a question was answered: the column of its name, or the only one. Numbers of people are refused.
 *
 * @param {Table} table
 * @param {Asked[]} questions
 */
export function requireColumns(table, questions) {
  const others = table.columns.filter((name) => !WEIGHTS.includes(name));
  if (isOfPeople(table) && questions.some(({ kind }) => !kind.countsPeople))
    throw new Error(
      "For a number, give ranges such as 0 to 20, with a column share or count: people's own numbers are not sent.",
    );
  if (questions.length === 1 && others.length === 1) return;
  const missing = questions.filter(({ name }) => !others.includes(name));
  if (missing.length > 0)
    throw new Error(
      `There is no column ${missing.map(({ name }) => name).join(", ")}: name the columns like the questions.`,
    );
}

/**
 * The rows of a table that the curator needs: the columns of these questions with share or count; of people only counts.
 *
 * @param {Table} table
 * @param {Asked[]} questions
 */
export function neededRows(table, questions) {
  const weights = weightOf(table);
  const others = table.columns.filter((name) => !WEIGHTS.includes(name));
  const places = questions.map(({ name }) =>
    table.columns.indexOf(questions.length === 1 && others.length === 1 ? others[0] : name),
  );
  const counts = new Map();
  const rows = [];
  for (const row of table.rows) {
    const cells = questions.map((question, i) => [
      question.name,
      coded(question, row[places[i]] ?? "", weights.length === 0),
    ]);
    if (weights.length > 0)
      rows.push(Object.fromEntries([...cells, ...weights.map((name) => [name, row[table.columns.indexOf(name)]])]));
    else counts.set(JSON.stringify(cells), (counts.get(JSON.stringify(cells)) ?? 0) + 1);
  }
  for (const [cells, count] of [...counts].sort())
    rows.push({ ...Object.fromEntries(JSON.parse(cells)), count: String(count) });
  return rows;
}

/**
 * An entry by its code, if it is the code or the text of an option. What else is written in a table of people is not sent.
 *
 * @param {Asked} question
 * @param {string} entry
 * @param {boolean} ofPeople
 */
function coded({ kind, codes }, entry, ofPeople) {
  if (ofPeople && !kind.countsPeople) return "?"; // the kind was changed after the table was chosen
  return kind.entry(entry, (text) => codes.get(text.toLowerCase()) ?? (ofPeople ? "?" : text));
}
