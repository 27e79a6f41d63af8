import type { SourceAnswer } from "../../protocol/index.ts";
import type { Verdict } from "../findings.ts";
import type { Store } from "../store.ts";

/** What keeps the page from showing the cluster as it is now, on every page. */
export function Notices({ store }: { readonly store: Store }) {
  const { facts, source, nodes } = store;
  const isDeleted = facts !== undefined && nodes.get(facts.node)?.deleted === true;
  return (
    <>
      {source.failing !== undefined && <Failing failing={source.failing} isKnown={facts !== undefined} />}
      {isDeleted && (
        <p class="notice warn" role="status">
          Node {facts.node} was deleted. The pages show what its proxy would do by the zone and addresses that it had;
          other nodes can be chosen on a service's page.
        </p>
      )}
    </>
  );
}

interface FailingProps {
  readonly failing: NonNullable<SourceAnswer["failing"]>;
  /** Whether there is anything to show. */
  readonly isKnown: boolean;
}

const PROBLEMS: Readonly<Record<FailingProps["failing"]["problem"], string>> = {
  unreachable: "does not answer",
  refused: "refuses requests",
  unreadable: "gives answers that cannot be read",
};

function Failing({ failing: { problem, server, error, resources, since }, isKnown }: FailingProps) {
  return (
    <p class="notice bad" role="alert">
      The API server {server} {PROBLEMS[problem]} for {resources.join(", ")}, since{" "}
      {new Date(since).toLocaleTimeString()}: {error}.{" "}
      {isKnown ? "The pages show what was known then." : "Nothing is known yet."} The console asks again until it gets
      an answer.
    </p>
  );
}

const LINKS: Readonly<Record<Store["link"], string>> = {
  opening: "opening …",
  live: "live",
  lost: "connection lost, trying again …",
  closed: "ended: start fairlead console again",
};

/** How far what is shown can be trusted: `live` only where the source of the objects answers, too. */
export function standing({ link, source }: Pick<Store, "link" | "source">): Verdict {
  const isLinked = link === "live" || link === "opening";
  if (isLinked && source.failing !== undefined) {
    return { tone: "bad", text: `API server ${PROBLEMS[source.failing.problem]}` };
  }
  return { tone: link === "live" ? "good" : "warn", text: LINKS[link] };
}
