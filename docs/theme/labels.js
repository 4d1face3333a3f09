// Names for two elements of the theme that have none, for screen readers.
function label() {
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
  // The button on a block of code is no navigation.
  document.querySelectorAll("nav.md-code__nav").forEach((bar) => bar.setAttribute("role", "presentation"));
}
label();
new MutationObserver(label).observe(document.body, { childList: true, subtree: true });
