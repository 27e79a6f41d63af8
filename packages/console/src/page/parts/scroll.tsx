import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

/**
 * What may be wider than the page, such as a table, scrolls by itself and leaves the page where it is. Where there is
 * something to scroll, the keyboard reaches it.
 *
 * @param label says what it is, for those who do not see it
 */
export function Scroll({ label, children }: { readonly label: string; readonly children: ComponentChildren }) {
  const box = useRef<HTMLDivElement>(null);
  const [isWide, setWide] = useState(false);
  const look = () => setWide((box.current?.scrollWidth ?? 0) > (box.current?.clientWidth ?? 0));
  useLayoutEffect(look);
  useLayoutEffect(() => {
    if (box.current === null) return;
    const sizes = new ResizeObserver(look);
    sizes.observe(box.current);
    return () => sizes.disconnect();
  }, []);
  const reached = isWide && { tabIndex: 0, role: "group" as const, "aria-label": label };
  return (
    <div class="scroll" ref={box} {...reached}>
      {children}
    </div>
  );
}
