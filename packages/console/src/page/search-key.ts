import { useEffect, useRef } from "preact/hooks";
import { addressOf, go } from "./router.ts";

/**
 * The key `/` leads to the search box from every page.
 *
 * @param where the page that is shown, and what it is about
 * @param enter focuses a page that was opened by other means
 */
export function useSearchKey(where: string, enter: () => void): void {
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
