import { buildPage } from "../../build/page.ts";

let built: Promise<string> | undefined;

/** The page as it is published; built once in a test's process. */
export function builtPage(): Promise<string> {
  built ??= buildPage().then(({ html }) => html);
  return built;
}
