import { useEffect, useRef } from "preact/hooks";
import { Badge } from "./parts/badge.tsx";
import { Notices, standing } from "./parts/notices.tsx";
import { addressOf, type Route, useRoute } from "./router.ts";
import { useSearchKey } from "./search-key.ts";
import { type Store, useStore } from "./store.ts";
import { DoctorView } from "./views/doctor.tsx";
import { FlowsView } from "./views/flows.tsx";
import { NetworksView } from "./views/networks.tsx";
import { OverviewView } from "./views/overview.tsx";
import { ServiceView } from "./views/service.tsx";
import { ServicesView } from "./views/services.tsx";
import { TraceView } from "./views/trace.tsx";
import { WhatIfView } from "./views/what-if.tsx";

const PAGES = [
  ["overview", "Overview"],
  ["services", "Services"],
  ["flows", "Flows"],
  ["trace", "Trace"],
  ["networks", "Networks"],
  ["what-if", "What if"],
  ["doctor", "Doctor"],
] as const;

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
            {facts.source} · {facts.mode} mode
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
