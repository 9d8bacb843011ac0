"use strict";
/* Elements of the page.
 * Names of devices, tenants, rules and pools are not trusted: all text goes into the page as text,
 * never as markup. */

const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";

function put(element, children) {
  element.replaceChildren(...children);
  return element;
}

function el(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key === "class") element.className = value;
    else element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** Changes the page only where the text differs: nothing flickers or loses its selection. */
function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function set(element, name, value) {
  if (value === null) element.removeAttribute(name);
  else if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

/** One child per item, by its key: kept, moved, made or removed. Equal keys are distinguished by order. */
function keyed(parent, items, keyOf, make, update) {
  const old = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  const times = new Map();
  const focused = document.activeElement;
  let at = parent.firstElementChild;
  for (const item of items) {
    const own = String(keyOf(item));
    const before = times.get(own) ?? 0;
    times.set(own, before + 1);
    const key = before ? `${own} again ${before}` : own;
    let child = old.get(key);
    old.delete(key);
    if (!child) {
      child = make(item);
      child.dataset.key = key;
    }
    if (child === at) at = at.nextElementSibling;
    else parent.insertBefore(child, at);
    update(child, item);
  }
  for (const child of old.values()) child.remove();
  if (focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
}
