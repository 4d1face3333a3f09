// Keys of questions, options and groups, which may move and be renamed while a survey is written.

let made = 0;

export function newKey() {
  made += 1;
  return `k${made}`;
}
