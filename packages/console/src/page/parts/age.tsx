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

/** `97 s`, `4 min`, `30 h`, `12 d` */
export function ageText(ms: number): string {
  const seconds = Math.round(ms / 1_000);
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`;
  const hours = Math.round(seconds / 3_600);
  return hours < 72 ? `${hours} h` : `${Math.round(hours / 24)} d`;
}
