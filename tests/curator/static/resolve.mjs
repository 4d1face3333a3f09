// Where the addresses of the pages' modules are in a checkout: `node --import ./register.mjs`.

const ROOT = new URL("../../../", import.meta.url);

export function resolve(specifier, context, next) {
  const [, name] = /^\/static\/([\w.]+)$/.exec(specifier) ?? [];
  if (name === undefined) return next(specifier, context);
  const folder = name === "priorveil.js" ? "clients/js/" : "src/priorveil/curator/static/";
  return next(new URL(folder + name, ROOT).href, context);
}
