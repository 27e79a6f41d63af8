import { render } from "preact";
import "./style.css";
import { App } from "./app.tsx";
import { openSession } from "./session.ts";
import { Store } from "./store.ts";

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
