import { useEffect, useState } from "preact/hooks";

/** What a view is made of, and how old that is; it counts on by itself. */
export function Age({ source, at }: { readonly source: string; readonly at: number }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  return (
    <span class="age">
      {source}, {ageText(Math.max(0, now - at))} ago
    </span>
  );
}

function ageText(ms: number): string {
  const seconds = Math.round(ms / 1_000);
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7_200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3_600)} h`;
}
