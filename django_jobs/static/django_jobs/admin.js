/* Three comforts; every page works without them: refresh, tick all, and the browser's time zone. */
"use strict";
(() => {
  const BUSY = "input:checked, textarea:focus, input:focus, select:focus, details:focus-within";

  function leaveZone() {
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    if (!zone || document.cookie.split("; ").includes(`django_jobs_zone=${zone}`)) return false;
    document.cookie = `django_jobs_zone=${zone}; path=/; max-age=31536000; samesite=lax`;
    return true;
  }

  async function fetchPage() {
    const response = await fetch(location.href, { headers: { "X-Django-Jobs-Refresh": "1" }, redirect: "error" });
    if (!response.ok) throw new Error(response.statusText);
    return new DOMParser().parseFromString(await response.text(), "text/html");
  }

  /* Put the fresh regions in place of the old ones, with what the viewer had opened and scrolled. */
  function replaceRegions(fresh) {
    for (const old of document.querySelectorAll("[data-dj-region]")) {
      const region = fresh.getElementById(old.id);
      if (!region || old.innerHTML === region.innerHTML) continue;
      for (const details of old.querySelectorAll("details[id]")) {
        const twin = region.querySelector(`#${CSS.escape(details.id)}`);
        if (twin) twin.open = details.open;
      }
      const scrolled = [...old.querySelectorAll(".dj-scroll")].map((box) => [box.scrollLeft, box.scrollTop]);
      old.replaceWith(region);
      region.querySelectorAll(".dj-scroll").forEach((box, n) => {
        if (scrolled[n]) [box.scrollLeft, box.scrollTop] = scrolled[n];
      });
    }
  }

  function isBusy() {
    const regions = [...document.querySelectorAll("[data-dj-region]")];
    return document.hidden || regions.some((region) => region.querySelector(BUSY) || region.contains(document.activeElement));
  }

  function startRefreshing(control) {
    const button = control.querySelector("button");
    let paused = sessionStorage.getItem("django_jobs_paused") === "1";
    const show = (state) => {
      control.dataset.djState = state;
      button.textContent = paused ? button.dataset.djGo : button.dataset.djPause;
    };
    const refresh = async () => {
      if (paused || isBusy()) return;
      try {
        const fresh = await fetchPage();
        if (!paused && !isBusy()) replaceRegions(fresh);
        show(paused ? "off" : "on");
      } catch {
        show("failed");
      }
    };
    button.addEventListener("click", () => {
      paused = !paused;
      sessionStorage.setItem("django_jobs_paused", paused ? "1" : "0");
      show(paused ? "off" : "on");
      refresh();
    });
    control.hidden = false;
    show(paused ? "off" : "on");
    setInterval(refresh, Number(control.dataset.djLive) * 1000);
    return refresh;
  }

  function offerTickAll(form) {
    const place = form.querySelector("[data-dj-all-place]");
    if (!place) return;
    const all = document.createElement("input");
    all.type = "checkbox";
    all.setAttribute("aria-label", place.dataset.djLabel);
    all.addEventListener("change", () => {
      for (const box of form.querySelectorAll("input[name=ids]")) box.checked = all.checked;
    });
    place.replaceChildren(all);
  }

  /* A form that shows what its values mean, while they are written. */
  function previewWhileTyping(form) {
    let waiting = 0;
    form.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(async () => {
        const response = await fetch(form.dataset.djPreview, { method: "POST", body: new FormData(form) });
        if (!response.ok) return;
        const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
        const region = fresh.getElementById("dj-preview");
        if (region) document.getElementById("dj-preview").replaceWith(region);
      }, 300);
    });
  }

  const zoneIsNew = leaveZone();
  document.querySelectorAll("form[data-dj-select]").forEach(offerTickAll);
  document.querySelectorAll("form[data-dj-preview]").forEach(previewWhileTyping);
  const control = document.querySelector("[data-dj-live]");
  if (control) {
    const refresh = startRefreshing(control);
    if (zoneIsNew) refresh();
  }
})();
