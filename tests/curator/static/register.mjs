// What the pages' modules load by its address: modules from a checkout (`resolve.mjs`), and the texts from the catalogue of Python.

import { readFileSync, readdirSync } from "node:fs";
import { register } from "node:module";

register("./resolve.mjs", import.meta.url);

const folder = new URL("../../../src/priorveil/catalogue/", import.meta.url);
const languages = readdirSync(folder)
  .filter((name) => name.endsWith(".json"))
  .map((name) => [name.replace(".json", ""), readFileSync(new URL(name, folder), "utf8")]);
const texts = Object.fromEntries(languages.map(([language, text]) => [language, JSON.parse(text)]));

globalThis.fetch = async (address) => {
  if (address !== "/static/texts.json") throw new TypeError(`no test serves ${address}`);
  return Response.json(texts);
};
