// The requests of the dashboard to the curator. The token stays in this tab.

const TOKEN = "priorveil-token"; // in sessionStorage: forgotten when the tab is closed

/** The token is unknown or no longer valid. */
export class SignedOut extends Error {}

export const signedIn = () => sessionStorage.getItem(TOKEN) !== null;
export const signIn = (token) => sessionStorage.setItem(TOKEN, token);
export const forget = () => sessionStorage.removeItem(TOKEN);

/** The response to a request about campaigns; an error response is thrown. */
export async function ask(path, options = {}) {
  const token = sessionStorage.getItem(TOKEN);
  if (!/^[!-~]+$/.test(token)) throw new SignedOut(); // no header can carry it, and no curator has it
  const headers = { authorization: `Bearer ${token}` };
  const response = await fetch(`/v1/campaigns${path}`, { ...options, headers, cache: "no-store" });
  if (response.status === 401) throw new SignedOut();
  if (!response.ok)
    throw new Error((await response.json().catch(() => ({}))).detail ?? `the curator answered ${response.status}`);
  return response;
}

export const read = async (path) => (await ask(path)).json();
export const remove = async (path) => (await ask(path, { method: "DELETE" })).json();
export const send = async (path, body) => (await ask(path, { method: "POST", body })).json();
