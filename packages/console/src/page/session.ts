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
export async function openSession(): Promise<string | undefined> {
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
