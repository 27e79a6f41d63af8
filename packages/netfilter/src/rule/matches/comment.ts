import { singleOption } from "../options.ts";
import { quoteComment } from "../quote.ts";
import type { MatchKind } from "./kind.ts";

export interface CommentMatch {
  readonly kind: "comment";
  readonly text: string;
}

export const comment: MatchKind<CommentMatch> = {
  modules: ["comment"],
  options: { "--comment": 1 },
  parse(raw) {
    const option = singleOption(raw, "--comment");
    return option === undefined || option.negated ? undefined : { kind: "comment", text: option.values[0] ?? "" };
  },
  render: ({ text }) => ` -m comment --comment ${quoteComment(text)}`,
};
