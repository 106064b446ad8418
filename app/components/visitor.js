// Who this browser is to the server: a secret made on the first visit and kept here. Where nothing can be kept, it lasts as long as the page.
(/** @type {unknown} */ session) => {
  const STORED = "qrag-visitor";
  const fresh = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  try {
    const kept = localStorage.getItem(STORED);
    if (/^[0-9a-f]{32}$/.test(kept || "")) return [session, kept];
    const key = fresh();
    localStorage.setItem(STORED, key);
    return [session, key];
  } catch {
    return [session, fresh()];
  }
}
