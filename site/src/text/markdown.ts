/** Code and comments are not prose: what looks like a link or a heading in them is none. Lengths and lines stay. */
const FENCES = /^( *)(```+)[\s\S]*?^\1\2[^\n]*$|<!--[\s\S]*?-->/gm;
const INLINE_CODE = /(`+)(?!`)[^\n]*?(?<!`)\1(?!`)/g;
const LINK = /(?<=\]\()[^()\s]+(?=\))/g;
const HEADING = /^#{1,6} +(.+?) *$/gm;

const blank = (text: string) => text.replace(/[^\n]/g, " ");

export interface MarkdownLink {
  /** As written: `../docs/install.md#the-image`. */
  readonly target: string;
  /** Offset of its first character in the text. */
  readonly at: number;
}

/** The targets of inline links and images, in their order. */
export function linksIn(text: string): readonly MarkdownLink[] {
  const prose = text.replace(FENCES, blank).replace(INLINE_CODE, blank);
  return Array.from(prose.matchAll(LINK), ({ 0: target, index }) => ({ target, at: index }));
}

/** The first heading, as plain text. Undefined where there is none. */
export function titleOf(text: string): string | undefined {
  const heading = /^# +(.+?) *$/m.exec(text.replace(FENCES, blank))?.[1];
  return heading === undefined ? undefined : plain(heading);
}

/** The anchors that GitHub gives to headings, in their order. */
export function anchorsIn(text: string): readonly string[] {
  const seen = new Map<string, number>();
  return Array.from(text.replace(FENCES, blank).matchAll(HEADING), ([, heading = ""]) => {
    const anchor = plain(heading)
      .toLowerCase()
      .replace(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, "")
      .replaceAll(" ", "-");
    const before = seen.get(anchor) ?? 0;
    seen.set(anchor, before + 1);
    return before === 0 ? anchor : `${anchor}-${before}`;
  });
}

const plain = (heading: string) => heading.replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1").replace(/[`*]/g, "");
