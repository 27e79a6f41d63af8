/** Figures as JSON for a file, numbers with four digits after the point. */
export function jsonText(value: unknown): string {
  const rounded = (_: string, field: unknown) =>
    typeof field === "number" ? Math.round(field * 10_000) / 10_000 : field;
  return `${JSON.stringify(value, rounded, 2)}\n`;
}
