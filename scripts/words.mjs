// Words that CONTRIBUTING.md's list replaces, in Markdown that users read and in all code. Pure; check-tree.mjs reads.

/** Fixtures are others' text; docs/cli.md is made from the help. */
const PROSE = /^(?:docs\/(?!cli\.md)[^/]+\.md|(?:[^/]+\/)*README\.md)$/;
const CODE = /^(?!(?:.*\/)?fixtures\/).*\.[cm]?[jt]sx?$/;

// quoted: CONTRIBUTING.md
const WORDS = "tells?|told|telling|beside|alone|nobody|somebody|everybody|whoever|whom";
const IN_CODE = new RegExp(`\\b(?:${WORDS})\\b`, "i");
const IN_PROSE = new RegExp(`\\b(?:${WORDS}|(?<!\\bthere )(?:is|are) no(?:ne)?(?! longer)|(?:has|have) none)\\b`, "i");

/** Markdown's code is no prose. */
const MARKED_CODE = /^```[\s\S]*?^```|`[^`\n]*`/gm;
/** A comment `// quoted: WHOSE TEXT` keeps the words on its line and on the next one. */
const QUOTED = /^.*\/\/ quoted: \S.*\n?.*/gm;

/** @param {string} file @param {string} text @returns {string[]} the words that are replaced, each with its place */
export function replacedWords(file, text) {
  if (PROSE.test(file)) return found(file, text.replace(MARKED_CODE, blanked), IN_PROSE);
  return CODE.test(file) ? found(file, text.replace(QUOTED, blanked), IN_CODE) : [];
}

function found(file, text, words) {
  return text.split("\n").flatMap((line, at) => {
    const word = words.exec(line)?.[0];
    return word === undefined ? [] : [`${file}:${at + 1}: "${word}": CONTRIBUTING.md has the word that we use`];
  });
}

function blanked(text) {
  return text.replace(/[^\n]/g, "x");
}
