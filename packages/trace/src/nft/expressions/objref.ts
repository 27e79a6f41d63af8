import { lengthOf, type NamedObject } from "@fairlead/netfilter/nft";
import { BREAK, type NftRuleContext, type Result } from "../rule-context.ts";
import { rememberedBy } from "../sets.ts";
import { connectionState } from "./ct.ts";
import type { Evaluate } from "./kind.ts";

export const objref: Evaluate<"objref"> = (expression, place) => {
  if ("object" in expression) return effectOf(expression.object, `"${expression.name}"`, place);
  const { walk, host, sets, registers } = place;
  const map = sets.get(expression.map);
  if (map?.objects === undefined) throw place.undecidable(`there is no map ${expression.map} of objects`);
  const key = registers.read(expression.from, lengthOf(map.key));
  const found = sets.find(map, key, rememberedBy(walk.remembered, host.environment.remembered ?? []));
  if (found.kind === "absent") return BREAK;
  const effect = effectOf(map.objects, `of map ${map.name}`, place);
  if (found.kind === "found" || effect === BREAK) return effect;
  return { kind: "open", problem: `${found.problem}: ${registers.reason}` };
};

/** What the kernel's nft_*_obj_eval does, as far as rules and routes are concerned. */
function effectOf(object: NamedObject, name: string, { walk, undecidable }: NftRuleContext): Result {
  switch (object) {
    case "counter":
    case "ct helper":
    case "ct timeout":
    case "secmark":
      return undefined;
    case "ct expectation":
      return connectionState(walk) === "NEW" && !walk.looped ? undefined : BREAK;
    case "limit":
    case "quota":
      return { kind: "open", problem: `the tracer cannot decide whether ${object} ${name} is used up` };
    case "synproxy":
      if (walk.protocol !== "tcp") return BREAK;
      throw undecidable(`synproxy ${name} answers for the server`);
  }
}
