/** The frame of all pages: navigation, search, notices. */

import { useEffect, useRef } from "preact/hooks";
import type { SourceAnswer } from "../protocol.ts";
import { modesText, type Verdict } from "./findings.ts";
import { Badge } from "./parts/common.tsx";
import { addressOf, go, type Route, useRoute } from "./router.ts";
import { type Store, useStore } from "./store.ts";
import { DoctorView } from "./views/doctor.tsx";
import { FlowsView } from "./views/flows.tsx";
import { NetworksView } from "./views/networks.tsx";
import { OverviewView } from "./views/overview.tsx";
import { ServiceView } from "./views/service.tsx";
import { ServicesView } from "./views/services.tsx";
import { TraceView } from "./views/trace.tsx";
import { WhatIfView } from "./views/what-if.tsx";

export function App({ store }: { readonly store: Store }) {
  useStore(store);
  const place = useRoute();
  const main = useRef<HTMLElement>(null);
  const { page } = place;
  const where = `${page} ${place.path.join("/")}`;
  useEffect(() => {
    document.title = `${titleOf(place)} – Fairlead`;
  }, [where]);
  useSearchKey(where, () => main.current?.focus({ preventScroll: true }));
  return (
    <div class="frame">
      <Top store={store} page={page} />
      <main ref={main} id="main" tabIndex={-1} class={page === "services" ? "fixed" : ""}>
        <Notices store={store} />
        {store.facts === undefined ? <Opening store={store} /> : <View store={store} place={place} />}
      </main>
    </div>
  );
}

const PAGES = [
  ["overview", "Overview"],
  ["services", "Services"],
  ["flows", "Flows"],
  ["trace", "Trace"],
  ["networks", "Networks"],
  ["what-if", "What if"],
  ["doctor", "Doctor"],
] as const;

/** Until the first objects are there. */
function Opening({ store }: { readonly store: Store }) {
  return (
    <>
      <h1>Fairlead console</h1>
      <p role="status">{standing(store).text}</p>
    </>
  );
}

function Top({ store, page }: { readonly store: Store; readonly page: string }) {
  const { facts } = store;
  const current = page === "service" ? "services" : page;
  return (
    <header class="top">
      <button type="button" class="skip" onClick={toMain}>
        To the content
      </button>
      <span class="brand">Fairlead</span>
      <nav aria-label="Pages">
        {PAGES.map(([name, title]) => (
          <a key={name} href={`#/${name}`} aria-current={name === current ? "page" : undefined}>
            {title}
          </a>
        ))}
      </nav>
      <span class="where">
        {facts !== undefined && (
          <span>
            {facts.source} · {facts.kernels ? modesText([...store.nodes.values()], facts) : `${facts.mode} mode`}
          </span>
        )}
        <span role="status">
          <Badge {...standing(store)} />
        </span>
      </span>
    </header>
  );
}

/** A link would take the place of the address in the fragment. */
function toMain(): void {
  document.getElementById("main")?.focus();
}

function View({ store, place }: { readonly store: Store; readonly place: Route }) {
  const [namespace = "", name = ""] = place.path;
  switch (place.page) {
    case "overview":
      return <OverviewView store={store} />;
    case "services":
      return <ServicesView store={store} query={place.query} />;
    case "service":
      return <ServiceView store={store} service={`${namespace}/${name}`} node={place.query.get("node") ?? ""} />;
    case "flows":
      return <FlowsView store={store} query={place.query} />;
    case "doctor":
      return <DoctorView store={store} query={place.query} />;
    case "networks":
      return <NetworksView store={store} />;
    case "trace":
      return <TraceView store={store} query={place.query} />;
    case "what-if":
      return <WhatIfView key={place.query.toString()} store={store} query={place.query} />;
    default:
      return (
        <>
          <h1>There is no such page</h1>
          <p>
            <a href={addressOf("overview")}>Overview</a> has what differs, the services by owner, and the nodes.
          </p>
        </>
      );
  }
}

function titleOf({ page, path }: Route): string {
  if (page === "service") return path.join("/");
  return PAGES.find(([name]) => name === page)?.[1] ?? "There is no such page";
}

/**
 * The key `/` leads to the search box from every page.
 *
 * @param where the page that is shown, and what it is about
 * @param enter focuses a page that was opened by other means
 */
function useSearchKey(where: string, enter: () => void): void {
  const searching = useRef(false);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== "/" || event.ctrlKey || event.altKey || event.metaKey || isTyping(event.target)) return;
      event.preventDefault();
      if (focusSearch()) return;
      searching.current = true;
      go(addressOf("services"));
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  useEffect(() => {
    if (!searching.current || !focusSearch()) enter();
    searching.current = false;
  }, [where]);
}

function focusSearch(): boolean {
  const box = document.querySelector<HTMLInputElement>("input[type=search]");
  box?.focus();
  return box !== null;
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches("input, textarea, select");
}

/** What keeps the page from showing the cluster as it is now, on every page. */
function Notices({ store }: { readonly store: Store }) {
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
function standing({ link, source }: Pick<Store, "link" | "source">): Verdict {
  const isLinked = link === "live" || link === "opening";
  if (isLinked && source.failing !== undefined) {
    return { tone: "bad", text: `API server ${PROBLEMS[source.failing.problem]}` };
  }
  return { tone: link === "live" ? "good" : "warn", text: LINKS[link] };
}
