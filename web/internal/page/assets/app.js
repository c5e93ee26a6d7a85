// The dashboard works without this script. With it, pages stay up to date, times are written as people do, and keys work.
"use strict";
(() => {
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const content = $("#content");

  // Times: the server writes them in UTC; here they become relative, with the exact one in the viewer's zone on hover.
  let format; // made at its first use: that takes a while, which a page needs to show something
  const exact = (time) => {
    format ??= new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });
    return format.format(new Date(time.dateTime));
  };
  const span = (s) => {
    const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
    for (const [size, name] of units) {
      if (s >= size) return Math.floor(s / size) + " " + name;
    }
    return "0 s";
  };
  function writeTimes(root = document) {
    const now = Date.now();
    for (const t of $$("time[datetime]", root)) {
      const at = new Date(t.dateTime);
      const ago = (now - at) / 1000;
      let text = ago >= 0 ? span(ago) + " ago" : "in " + span(-ago);
      if (Math.abs(ago) < 1) text = "now";
      if (t.hasAttribute("data-exact")) text = exact(t);
      if (t.textContent !== text) t.textContent = text;
    }
  }
  document.addEventListener("mouseover", (e) => {
    const time = e.target.closest("time[datetime]");
    if (time) time.title = exact(time);
  });

  // names maps each child to a name by which its counterpart in another version of the page is found: by id or data-key,
  // or by its kind and its place among those of that kind. (A form with a field named id has that as its property id.)
  function names(parent) {
    const found = new Map();
    const counts = new Map();
    for (const n of parent.children) {
      const key = n.getAttribute("id") || n.getAttribute("data-key");
      const kind = n.nodeName + (key ? " " + key : "." + ([...n.classList].find((c) => c !== "at") || ""));
      counts.set(kind, (counts.get(kind) || 0) + 1);
      found.set(n, kind + " " + counts.get(kind));
    }
    return found;
  }
  // morph makes one element like another, and keeps what the user has done: open details, marked boxes, typed texts,
  // the focus. An element with data-keep is left alone.
  function morph(from, to) {
    if (from.hasAttribute("data-keep") && to.hasAttribute("data-keep")) return;
    for (const { name } of [...from.attributes]) {
      const own = name === "open" || (name === "class" && from.classList.contains("at")) || name === "title";
      if (!to.hasAttribute(name) && !own) from.removeAttribute(name);
    }
    for (const { name, value } of to.attributes) {
      if (name === "open" && from.nodeName === "DETAILS") continue;
      if (name === "class" && from.classList.contains("at")) {
        from.className = value + " at";
      } else if (from.getAttribute(name) !== value) {
        from.setAttribute(name, value);
      }
    }
    if (from.nodeName === "TEXTAREA" || from.nodeName === "SELECT") return;
    if (from.nodeName === "TIME" && from.dateTime === to.dateTime) return;
    // What is gone goes first, so that nothing that stays has to be moved, which would take the focus from it.
    const nexts = names(to);
    const wanted = new Set(nexts.values());
    const kept = new Map();
    for (const [n, name] of names(from)) wanted.has(name) ? kept.set(name, n) : n.remove();
    let at = from.firstChild;
    const drop = () => {
      const gone = at;
      at = at.nextSibling;
      gone.remove();
    };
    for (const next of [...to.childNodes]) {
      const found = next.nodeType === 1 ? kept.get(nexts.get(next)) : at?.nodeName === next.nodeName && at;
      if (!found) {
        from.insertBefore(document.importNode(next, true), at);
        continue;
      }
      while (at && at !== found && at.nodeType !== 1) drop();
      if (found === at) at = at.nextSibling;
      else from.insertBefore(found, at);
      if (found.nodeType === 1) morph(found, next);
      else if (found.data !== next.data) found.data = next.data;
    }
    while (at) drop();
  }

  // Live pages: by events, or by asking again where these do not get through.
  const state = $(".status");
  function say(kind, text) {
    if (!state) return;
    state.className = "status " + kind;
    state.textContent = text;
  }
  function show(html) {
    const box = document.createElement("div");
    box.append(new DOMParser().parseFromString("<div id=content>" + html + "</div>", "text/html").getElementById("content"));
    morph(content, box.firstChild);
    writeTimes(content);
    document.dispatchEvent(new CustomEvent("delayed:shown"));
  }
  const live = document.body.dataset.live;
  let events = null;
  let failures = 0;
  async function ask() {
    if (document.hidden) {
      setTimeout(ask, 5000);
      return;
    }
    try {
      const r = await fetch(location.href, { headers: { "X-Delayed-Main": "1" } });
      if (!r.ok) throw new Error(r.statusText);
      show(await r.text());
      say("late", "Asks every 5 s");
    } catch {
      say("late", "No connection");
    }
    setTimeout(ask, 5000);
  }
  function listen() {
    events = new EventSource(live);
    events.addEventListener("open", () => {
      failures = 0;
      say("live", "Live");
    });
    events.addEventListener("main", (e) => {
      show(JSON.parse(e.data));
      say("live", "Live");
    });
    events.addEventListener("problem", (e) => say("late", JSON.parse(e.data)));
    events.addEventListener("error", () => {
      say("late", "Connecting again");
      if (events.readyState !== EventSource.CLOSED && ++failures < 4) return;
      events.close();
      ask();
    });
  }
  if (live) {
    if (!("EventSource" in window)) ask();
    else if (!document.hidden) listen();
  }
  // A page that nobody sees does not listen: without HTTP/2, browsers open only six connections to a server.
  document.addEventListener("visibilitychange", () => {
    if (!live || !("EventSource" in window)) return;
    if (!document.hidden) {
      if (!events) listen();
    } else if (events && events.readyState !== EventSource.CLOSED) {
      events.close();
      events = null;
    }
  });

  // Keys.
  const typing = (e) => e.target.closest("input, textarea, select, [contenteditable]");
  const rows = () => $$(".rows tbody tr", content);
  let leader = 0;
  function move(step) {
    const all = rows();
    if (!all.length) return;
    const now = all.findIndex((r) => r.classList.contains("at"));
    const next = now < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(Math.max(now + step, 0), all.length - 1);
    if (now >= 0) all[now].classList.remove("at");
    all[next].classList.add("at");
    all[next].scrollIntoView({ block: "nearest" });
  }
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if (typing(e)) {
      if (e.key === "Escape") e.target.blur();
      return;
    }
    if ($("dialog[open]")) return;
    const here = $(".rows tbody tr.at", content);
    if (leader > Date.now()) {
      leader = 0;
      const link = $$("nav a").find((a) => a.dataset.key === e.key);
      if (link) link.click();
      return;
    }
    switch (e.key) {
      case "/":
        e.preventDefault();
        ($(".filters input[type=search]") || $(".search input")).focus();
        break;
      case "?":
        $("#keys").showModal();
        break;
      case "j":
        move(1);
        break;
      case "k":
        move(-1);
        break;
      case "g":
        leader = Date.now() + 1500;
        break;
      case "x":
        $("input[type=checkbox]", here || document.createElement("i"))?.click();
        break;
      case "Enter":
        if (e.target === document.body || e.target.id === "main") $("a", here || document.createElement("i"))?.click();
        break;
    }
  });

  // Colours, by choice: from the system's to the other ones, then to those that the system has now, and back.
  $(".theme")?.addEventListener("click", (e) => {
    const root = document.documentElement;
    const [own, other] = matchMedia("(prefers-color-scheme: dark)").matches ? ["dark", "light"] : ["light", "dark"];
    const next = { [other]: own, [own]: "" }[root.dataset.theme] ?? other;
    if (next) root.dataset.theme = next;
    else delete root.dataset.theme;
    document.cookie = "delayed_theme=" + next + "; max-age=" + (next ? 31536000 : 0) + "; samesite=strict";
    const button = e.currentTarget;
    button.title = "Colours: " + (next || "as the system");
    button.setAttribute("aria-label", button.title);
  });

  // The menu of narrow screens.
  $(".menu")?.addEventListener("click", (e) => {
    const open = $("nav").classList.toggle("open");
    e.target.setAttribute("aria-expanded", open);
  });

  // A secret in the address behind # signs in, so that no server or log on the way sees it.
  const token = $("#token");
  if (token && location.hash.length > 1) {
    token.value = decodeURIComponent(location.hash.slice(1));
    history.replaceState(null, "", location.pathname);
    token.form.submit();
  }

  // Actions that destroy ask first: data-confirm has the question, with {n} for the number of marked boxes.
  document.addEventListener("submit", (e) => {
    const form = e.target;
    const question = e.submitter?.dataset.confirm || form.dataset.confirm;
    if (question && !confirm(question.replace("{n}", marked(form).size))) {
      e.preventDefault();
      return;
    }
    if (form.hasAttribute("data-trim")) {
      for (const input of $$("input", form)) input.disabled = input.disabled || input.value === "";
    }
    if (form.dataset.selection && e.submitter?.hasAttribute("data-needs-some")) {
      for (const old of $$("input[data-elsewhere]", form)) old.remove();
      const here = new Set($$("input[name=id]", form).map((box) => box.value));
      for (const id of marked(form)) {
        if (here.has(id)) continue;
        const input = document.createElement("input");
        Object.assign(input, { type: "hidden", name: "id", value: id });
        input.setAttribute("data-elsewhere", "");
        form.append(input);
      }
      keep(form, new Set());
    }
  });
  addEventListener("pageshow", () => {
    for (const input of $$("form[data-trim] input")) input.disabled = false;
  });

  // Marks of boxes: a box with data-all marks all of its form, and elements with data-count tell how many are marked. A
  // form with data-selection keeps the marks under that name, so that they go on over the pages of a list.
  const memory = new Map(); // where there is no storage
  const kept = (form) => "selected " + location.pathname + " " + form.dataset.selection;
  function marked(form) {
    if (!form.dataset.selection) return new Set($$("input[name=id]:checked", form).map((box) => box.value));
    try {
      return new Set(JSON.parse(sessionStorage.getItem(kept(form)) || "[]"));
    } catch {
      return new Set(memory.get(kept(form)));
    }
  }
  function keep(form, ids) {
    try {
      if (ids.size) sessionStorage.setItem(kept(form), JSON.stringify([...ids]));
      else sessionStorage.removeItem(kept(form));
    } catch {
      memory.set(kept(form), ids);
    }
  }
  function count() {
    for (const out of $$("[data-count]")) {
      const form = out.closest("form");
      const ids = marked(form);
      const boxes = $$("input[name=id]", form);
      for (const box of boxes) {
        if (form.dataset.selection) box.checked = ids.has(box.value);
        box.closest("tr")?.classList.toggle("marked", box.checked);
      }
      const on = boxes.filter((box) => box.checked).length;
      const all = $("[data-all]", form);
      if (all) {
        all.checked = on > 0 && on === boxes.length;
        all.indeterminate = on > 0 && on < boxes.length;
      }
      out.textContent = ids.size > on ? ids.size + " (" + on + " here)" : ids.size;
      for (const b of $$("[data-needs-some]", form)) b.disabled = ids.size === 0;
      for (const b of $$("[data-unselect]", form)) b.hidden = ids.size === 0;
    }
  }
  function note(form) {
    const ids = marked(form);
    for (const box of $$("input[name=id]", form)) box.checked ? ids.add(box.value) : ids.delete(box.value);
    keep(form, ids);
  }
  document.addEventListener("change", (e) => {
    const form = e.target.form;
    if (e.target.matches("[data-all]")) {
      for (const box of $$("input[name=id]", form)) box.checked = e.target.checked;
    }
    if (form?.dataset.selection && e.target.matches("[data-all], input[name=id]")) note(form);
    if (e.target.matches("[data-submit]")) form.requestSubmit();
    count();
  });
  document.addEventListener("click", (e) => {
    const none = e.target.closest("[data-unselect]");
    if (none) {
      keep(none.form, new Set());
      for (const box of $$("input[name=id]", none.form)) box.checked = false;
      count();
    }
    for (const pop of $$("details.pop[open]")) if (!pop.contains(e.target)) pop.open = false;
    const copy = e.target.closest("[data-copy]");
    if (copy) {
      navigator.clipboard?.writeText($(copy.dataset.copy)?.textContent || "").then(() => {
        copy.textContent = "Copied";
        setTimeout(() => (copy.textContent = "Copy"), 1500);
      });
    }
  });
  document.addEventListener("delayed:shown", count);

  writeTimes();
  count();
  setInterval(writeTimes, 1000);
})();
