// Makes the pages quicker to use. Everything works without it: each part only improves what the server sent.
//
// Live updates ask the server for the same page again and replace elements with `data-live` whose markup changed, by
// id. Rows that are new are announced and never inserted. Nothing is replaced while a person does something.

const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
const body = document.body;
const POLL_MS = 10_000;
const OPEN_WITHIN_MS = 5_000;
const REFRESH_MIN_MS = 2_000;
const STREAMS_MAX = 3;
const KEY_SEQUENCE_MS = 1_500;
const SUGGEST_AFTER_MS = 150;
const JUST_NOW_SECONDS = 5;
const KEPT_SECONDS = 400 * 86_400;

// Only answers of our own server are parsed, and every text in them was escaped there.
const policy = window.trustedTypes?.createPolicy("tsuzuki", { createHTML: (text) => text });
const parse = (html) =>
  new DOMParser().parseFromString(policy ? policy.createHTML(html) : html, "text/html");

async function fetchPage(url, signal) {
  const answer = await fetch(url, { signal, headers: { "Tsuzuki-Fragment": "main", Accept: "text/html" } });
  if (answer.redirected && new URL(answer.url).pathname === "/sign-in") location.assign(answer.url);
  if (!answer.ok) throw new Error(`${answer.status}`);
  const page = parse(await answer.text());
  page.ageMs = Number(answer.headers.get("Tsuzuki-Age-Ms") ?? 0);
  return page;
}

function say(text) {
  $("#spoken").textContent = text;
}

// ---- Times ----

const units = [["day", 86_400], ["hour", 3_600], ["minute", 60], ["second", 1]];
const relativeFormat = new Intl.RelativeTimeFormat(document.documentElement.lang, {
  style: "short", numeric: "always",
});

function relativeText(seconds) {
  const distance = Math.abs(seconds);
  if (seconds <= 0 && distance < JUST_NOW_SECONDS) return $("#spoken").dataset.justNow;
  const [unit, size] = units.find(([, length]) => distance >= length) ?? units.at(-1);
  const text = relativeFormat.format(Math.trunc(seconds / size), unit);
  return text.replace("sec.", "s").replace("min.", "min").replace("hr.", "h");
}

function refreshTimes() {
  for (const time of $$("time[data-relative]")) {
    const text = relativeText((Date.parse(time.dateTime) - Date.now()) / 1000);
    if (time.textContent !== text) time.textContent = text;
  }
}

// The server learns the zone of a browser from a cookie, and draws the first page again in it.
function keepZone() {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const cookie = `__Host-tsuzuki-zone=${encodeURIComponent(zone)}`;
  if (!zone || body.dataset.zone === zone || document.cookie.includes(cookie)) return;
  document.cookie = `${cookie}; Path=/; Secure; SameSite=Lax; Max-Age=${KEPT_SECONDS}`;
  if (!body.hasAttribute("data-chosen-zone") && document.cookie.includes(cookie)) location.reload();
}

// The server's clock goes on in the zone of the page, which its text names last.
function startClock() {
  const time = $(".clock time");
  if (!time) return;
  const ahead = Date.parse(time.dateTime) - performance.now();
  const zoneName = time.textContent.split(" ").at(-1);
  setInterval(() => {
    if (document.hidden) return;
    const now = new Date(ahead + performance.now());
    time.dateTime = now.toISOString();
    time.textContent = `${now.toLocaleString("sv-SE", { timeZone: body.dataset.zone })} ${zoneName}`;
  }, 1_000);
}

// ---- Live updates ----

const mark = $("#live-mark");
let source = null;
let refreshing = false;
let isWaiting = false;
let askedAt = 0;
let refreshedAt = 0;
let timer = 0;
let tookMs = 0;
let heardAt = 0;
let isConnecting = false;

function isBusy() {
  // What a person does now must not move: a dialog, a selected row, marked text, a field that is typed in.
  const selection = getSelection();
  return Boolean(
    $("dialog[open]") ||
      $("[data-live-rows] input:checked") ||
      (selection && !selection.isCollapsed && $("main").contains(selection.anchorNode)) ||
      $("main")?.contains(document.activeElement) &&
        document.activeElement.matches("input:not([type=checkbox]), textarea, select"),
  );
}

function show(state) {
  if (!mark) return;
  mark.dataset.state = state;
  // What is paused or lost grows old: say how old.
  const age = ["paused", "lost"].includes(state) ? ` · ${relativeText((refreshedAt - performance.now()) / 1000)}` : "";
  $("[data-text]", mark).textContent = mark.dataset[state] + age;
}

function currentState() {
  if (isWaiting && isBusy()) return "paused";
  return source ? "live" : "poll";
}

function heard() {
  heardAt = performance.now();
  wanted();
}

function wanted() {
  clearTimeout(timer);
  const pause = Math.max(REFRESH_MIN_MS, tookMs * 10);
  timer = setTimeout(refresh, Math.max(0, askedAt + pause - performance.now()));
}

async function refresh() {
  if (document.hidden || refreshing) return;
  isWaiting = isBusy();
  if (isWaiting) return show("paused");
  refreshing = true;
  const started = performance.now();
  let madeAt = Infinity;
  try {
    const page = await fetchPage(location.href);
    isWaiting = isBusy();
    if (!isWaiting) apply(page);
    madeAt = started - page.ageMs;
    if (!isWaiting) refreshedAt = madeAt;
    show(currentState());
  } catch {
    show("lost");
  } finally {
    refreshing = false;
    askedAt = performance.now();
    tookMs = askedAt - started;
  }
  // The server shares a rendering for a second: this one may be older than what we heard of.
  if (madeAt < heardAt) wanted();
}

function apply(page) {
  const fresh = new Set();
  for (const next of $$("[data-live]", page)) {
    const now = document.getElementById(next.id);
    if (!now) {
      if (next.closest("[data-live-rows]")) fresh.add(next.id);
    } else if (isNewer(now, next)) {
      replace(now, next);
    }
  }
  announce(fresh.size);
  refreshTimes();
  document.dispatchEvent(new CustomEvent("tsuzuki:refreshed"));
}

// What the server last sent for each live element, without the texts that our own clock keeps current.
const shown = new Map();

function markup(element) {
  return element.outerHTML.replace(/(<time[^>]*data-relative[^>]*>)[^<]*/g, "$1");
}

function isNewer(now, next) {
  const [before, after] = [Number(now.dataset.version ?? 0), Number(next.dataset.version ?? 0)];
  const sent = markup(next);
  if (after < before || shown.get(next.id) === sent) return false;
  shown.set(next.id, sent);
  return true;
}

function replace(now, next) {
  const focused = now.contains(document.activeElement) ? document.activeElement.id : "";
  const isFocusRow = now.hasAttribute("data-focus");
  const open = $$("details[open]", now).map((details) => details.className);
  const scrolled = $$("[data-keep-scroll]", now).map((box) => [box.id, box.scrollTop, box.scrollTop + box.clientHeight >= box.scrollHeight - 4]);
  now.replaceWith(document.adoptNode(next));
  if (isFocusRow) next.setAttribute("data-focus", "");
  for (const name of open) for (const details of $$("details", next)) if (details.className === name) details.open = true;
  for (const [id, top, atEnd] of scrolled) {
    const box = document.getElementById(id);
    if (box) box.scrollTop = atEnd ? box.scrollHeight : top;
  }
  enhance(next);
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
}

function announce(count) {
  const bar = $("#new-rows");
  bar.hidden = count === 0;
  if (count) $("a", bar).textContent = count === 1 ? bar.dataset.one : bar.dataset.many.replace("{n}", count);
}

// A browser has six connections for a server. Tabs that are seen at the same time share three of them for streams; a
// further one polls, so that pages and forms always get through.
async function takeStreamSlot() {
  if (!navigator.locks) return () => {};
  for (let slot = 0; slot < STREAMS_MAX; slot += 1) {
    const release = await new Promise((done) => {
      navigator.locks.request(`tsuzuki-stream-${slot}`, { ifAvailable: true }, (lock) =>
        lock ? new Promise((free) => done(free)) : done(null),
      );
    });
    if (release) return release;
  }
  return null;
}

async function connect() {
  if (!body.dataset.topics || document.hidden || source || isConnecting) return;
  isConnecting = true;
  const release = await takeStreamSlot();
  isConnecting = false;
  if (document.hidden) return release?.();
  if (!release) return startPolling();
  open(release);
}

function open(release) {
  const opened = new EventSource(`/api/v1/stream?topics=${encodeURIComponent(body.dataset.topics)}`);
  let isOpen = false;
  source = { close() { opened.close(); release(); } };
  const own = source;
  const fallBack = setTimeout(() => { if (!isOpen) startPolling(own); }, OPEN_WITHIN_MS);
  opened.onopen = () => { isOpen = true; clearTimeout(fallBack); show(currentState()); wanted(); };
  opened.onerror = () => {
    if (opened.readyState === EventSource.CLOSED) { clearTimeout(fallBack); startPolling(own); } else if (isOpen) show("lost");
  };
  for (const name of ["message", "runs", "created", "progress", "logs", "workers", "items", "reload"]) opened.addEventListener(name, heard);
}

function startPolling(opened) {
  opened?.close();
  if (source === opened) source = null;
  show("poll");
}

function disconnect() {
  source?.close();
  source = null;
}

function startLive() {
  if (!body.dataset.topics) return;
  connect();
  // Beside the stream too: it tells of moves, and a run that was only created has made none.
  setInterval(wanted, POLL_MS);
  // A browser has six connections for a server: a tab that is not seen holds none.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) disconnect();
    else { connect(); wanted(); }
  });
  addEventListener("pagehide", disconnect);
  addEventListener("pageshow", (event) => { if (event.persisted) connect(); });
  for (const name of ["selectionchange", "change", "focusout", "close"]) {
    document.addEventListener(name, () => { if (isWaiting && !isBusy()) wanted(); }, true);
  }
}

// ---- Dialogs ----

async function openInDialog(link) {
  const dialog = $("#confirm-dialog");
  const content = $("[data-content]", dialog);
  try {
    const page = await fetchPage(link.href);
    const form = $("[data-dialog-content]", page);
    if (!form) return location.assign(link.href);
    content.replaceChildren(document.adoptNode(form));
    for (const cancel of $$("[data-dialog-close]", content)) {
      cancel.addEventListener("click", (event) => { event.preventDefault(); dialog.close(); });
    }
    enhance(content);
    dialog.showModal();
  } catch {
    location.assign(link.href);
  }
}

// ---- Keys and palette ----

let pressedG = 0;

function rows() {
  return $$("tr[data-href]");
}

function moveRow(step) {
  const all = rows();
  if (!all.length) return;
  const at = all.findIndex((row) => row.hasAttribute("data-focus"));
  all[at]?.removeAttribute("data-focus");
  const row = all[Math.min(Math.max(at + step, 0), all.length - 1)];
  row.setAttribute("data-focus", "");
  row.scrollIntoView({ block: "nearest" });
  $("a", row)?.focus({ preventScroll: true });
}

function openPalette() {
  const dialog = $("#palette");
  const input = $("input", dialog);
  input.value = "";
  fillPalette("");
  dialog.showModal();
}

function fillPalette(text, found = []) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const links = $$(".menu-list a, .menu-foot a, main [data-command], .page-header .actions a.button");
  const entries = links
    .map((link) => [link.textContent.trim(), link.href, ""])
    .filter(([label]) => words.every((word) => label.toLowerCase().includes(word)));
  const others = found.filter((place) => place.kind !== "page").map((place) => [place.label, place.href, place.word]);
  if (found.some((place) => place.is_exact && place.kind !== "page")) entries.unshift(...others);
  else entries.push(...others);
  if (text.trim() && !entries.length) entries.push([`→ ${text.trim()}`, `/go?q=${encodeURIComponent(text.trim())}`, ""]);
  $("#palette-list").replaceChildren(...entries.slice(0, 20).map(paletteEntry));
  selectEntry(0);
}

function paletteEntry([label, href, word], index) {
  const entry = document.createElement("li");
  entry.role = "option";
  entry.id = `palette-${index}`;
  entry.dataset.href = href;
  const name = document.createElement("bdi");
  name.textContent = label;
  const kind = document.createElement("span");
  kind.className = "muted";
  kind.textContent = word;
  entry.append(...(word ? [kind, name] : [name]));
  return entry;
}

// Places that the server knows: runs, jobs, workers, items by what was typed or pasted.
let suggesting = 0;

function suggest(text) {
  clearTimeout(suggesting);
  if (!text.trim()) return;
  suggesting = setTimeout(async () => {
    const answer = await fetch(`/go.json?q=${encodeURIComponent(text.trim())}`).catch(() => null);
    if (!answer?.ok || $("#palette input").value !== text) return;
    const view = await answer.json();
    if ($("#palette input").value === text) fillPalette(text, view.places);
  }, SUGGEST_AFTER_MS);
}

function selectEntry(index) {
  const entries = $$("#palette-list li");
  entries.forEach((entry, at) => entry.setAttribute("aria-selected", String(at === index)));
  $("#palette input").setAttribute("aria-activedescendant", entries[index]?.id ?? "");
  entries[index]?.scrollIntoView({ block: "nearest" });
}

function startPalette() {
  const dialog = $("#palette");
  const input = $("input", dialog);
  input.addEventListener("input", () => { fillPalette(input.value); suggest(input.value); });
  dialog.addEventListener("click", (event) => {
    const entry = event.target.closest("li");
    if (entry) location.assign(entry.dataset.href);
    else if (event.target === dialog) dialog.close();
  });
  dialog.addEventListener("keydown", (event) => {
    const entries = $$("#palette-list li");
    const at = entries.findIndex((entry) => entry.getAttribute("aria-selected") === "true");
    if (event.key === "ArrowDown") selectEntry(Math.min(at + 1, entries.length - 1));
    else if (event.key === "ArrowUp") selectEntry(Math.max(at - 1, 0));
    else if (event.key === "Enter" && entries[at]) location.assign(entries[at].dataset.href);
    else return;
    event.preventDefault();
  });
}

function onKey(event) {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    return $("#palette").open ? $("#palette").close() : openPalette();
  }
  const isTyping = event.target.matches?.("input:not([type=checkbox]), textarea, select, [contenteditable]");
  if (body.dataset.keys !== "on" || event.ctrlKey || event.metaKey || event.altKey || isTyping || $("dialog[open]")) return;
  if (pressedG && performance.now() - pressedG < KEY_SEQUENCE_MS) {
    pressedG = 0;
    const link = $(`a[data-key="${CSS.escape(event.key)}"]`);
    if (link) { event.preventDefault(); location.assign(link.href); }
    return;
  }
  const focused = $("tr[data-focus]");
  switch (event.key) {
    case "g": pressedG = performance.now(); break;
    case "/": event.preventDefault(); $("#jump")?.focus(); break;
    case "?": $("#keys").showModal(); break;
    case "j": moveRow(1); break;
    case "k": moveRow(-1); break;
    case "x": $("input[type=checkbox]", focused ?? document.createElement("p"))?.click(); break;
    case "Enter": if (focused && event.target.matches("body, main")) location.assign(focused.dataset.href); break;
    default: return;
  }
}

// ---- Search while typing ----

let typed = new AbortController();

// Each key asks anew, and what was asked before is given up. The address is that of the results that are shown.
async function searchTyped(form) {
  const shown = document.getElementById(form.dataset.typed);
  if (!shown) return;
  typed.abort();
  typed = new AbortController();
  const { signal } = typed;
  const url = `${form.action}?${new URLSearchParams([...new FormData(form)].filter(([, value]) => value))}`;
  try {
    const page = await fetchPage(url, signal);
    const next = document.adoptNode(page.getElementById(form.dataset.typed));
    if (signal.aborted) return;
    document.getElementById(form.dataset.typed).replaceWith(next);
    enhance(next);
    history.replaceState(null, "", url);
    say(next.dataset.spoken ?? "");
  } catch {
    // The button of the form still sends it.
  }
}

document.addEventListener("input", (event) => {
  if (event.target.form?.dataset.typed) searchTyped(event.target.form);
});

// ---- Single elements ----

function countSelected() {
  for (const bar of $$("[data-selection]")) {
    const count = $$("[data-live-rows] tbody input:checked").length;
    for (const text of $$("[data-selected]", bar)) text.textContent = String(count);
    for (const button of $$("[data-needs-selection]", bar)) button.disabled = count === 0;
    for (const button of $$("[data-needs-pair]", bar)) button.disabled = count !== 2;
  }
}

function enhance(root) {
  for (const button of $$("[data-copy]", root)) button.hidden = !navigator.clipboard;
  for (const element of $$("[data-with-script]", root)) element.hidden = false;
  for (const element of $$("[data-without-script]", root)) element.hidden = true;
}

document.addEventListener("click", async (event) => {
  const copy = event.target.closest("[data-copy]");
  if (copy) {
    await navigator.clipboard.writeText(copy.dataset.copy);
    say($("#spoken").dataset.copied);
    return;
  }
  const link = event.target.closest("a[data-dialog]");
  if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey && event.button === 0) {
    event.preventDefault();
    await openInDialog(link);
  }
});

document.addEventListener("change", (event) => {
  const all = event.target.closest("[data-select-all]");
  if (all) for (const box of $$("[data-live-rows] tbody input[type=checkbox]:enabled")) box.checked = all.checked;
  if (event.target.matches("[data-submit-on-change]")) event.target.form.requestSubmit();
  countSelected();
});

document.addEventListener("keydown", onKey);
addEventListener("pageshow", countSelected);
const sentAtOnce = $("form[data-submit]");
if (sentAtOnce) {
  // Not while the browser only prepares a page that its user may never go to.
  if (document.prerendering) document.addEventListener("prerenderingchange", () => sentAtOnce.requestSubmit(), { once: true });
  else sentAtOnce.requestSubmit();
}
for (const element of $$("[data-live]")) shown.set(element.id, markup(element));
enhance(document);
startPalette();
keepZone();
startClock();
refreshTimes();
for (const box of $$("[data-follow]")) if (!location.hash) box.scrollTop = box.scrollHeight;
setInterval(() => {
  if (document.hidden) return;
  if (!isBusy()) refreshTimes();
  if (mark?.dataset.state) show(mark.dataset.state);
}, 5_000);
startLive();
