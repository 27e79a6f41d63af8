/** The page's start: opens the session and draws the page. */

import { render } from "preact";
import "./style.css";
import { App } from "./app.tsx";
import { Store } from "./store.ts";

const TOKEN = "#token=";

/** An address that is opened where the console is shown already changes the fragment only. */
addEventListener("hashchange", () => {
  if (location.hash.startsWith(TOKEN)) location.reload();
});

/**
 * Exchanges the token of the address for a cookie, once, and takes it out of the address.
 *
 * @returns why the console cannot be opened; undefined: it is open
 */
async function openSession(): Promise<string | undefined> {
  const { hash } = location;
  if (!hash.startsWith(TOKEN)) return undefined;
  const [token = "", place = ""] = hash.slice(TOKEN.length).split("&at=");
  history.replaceState(undefined, "", place === "" ? "#/" : `#${decodeURIComponent(place)}`);
  const answer = await fetch("session", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ token }),
  });
  if (answer.ok) return undefined;
  // The same browser has been here before: its cookie is good.
  if ((await fetch("api/search?q=-")).ok) return undefined;
  return "This address was opened before, and its token is good for once. Start fairlead console again.";
}

const root = document.getElementById("app");
if (root !== null) {
  const problem = await openSession();
  if (problem === undefined) {
    const store = new Store();
    store.connect();
    render(<App store={store} />, root);
  } else {
    render(
      <main>
        <h1>Fairlead console</h1>
        <p role="alert">{problem}</p>
      </main>,
      root,
    );
  }
}
