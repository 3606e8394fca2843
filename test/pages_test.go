package test

import (
	"fmt"
	"strings"
	"testing"
)

// badLayout finds faults of a page: what is wider than the window or its cell,
// words that are broken where there is no need to, and text in nearly the colour of
// what it stands on. Addresses and names may be broken anywhere.
const badLayout = `(() => {
	const found = [], root = document.documentElement;
	if (root.scrollWidth > root.clientWidth) found.push("the page is " + root.scrollWidth + " wide in a window of " + root.clientWidth);
	const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (texts.nextNode()) {
		const node = texts.currentNode, at = node.parentElement;
		if (!at.checkVisibility() || at.closest("code, a, pre, td.address, .address, .skip, blockquote")) continue;
		for (const word of node.data.matchAll(/\S+/g)) {
			if (word[0].length > 14 || word[0].includes("-") || word[0].includes("/")) continue;
			const range = document.createRange();
			range.setStart(node, word.index);
			range.setEnd(node, word.index + word[0].length);
			const lines = new Set(Array.from(range.getClientRects(), r => Math.round(r.top)));
			if (lines.size > 1) found.push("the word " + word[0] + " is broken in <" + at.localName + ">");
		}
	}
	for (const e of document.querySelectorAll("th, td")) {
		const r = e.getBoundingClientRect();
		if (r.width > 1 && r.width < 24) found.push("a cell is " + Math.round(r.width) + " wide: " + e.textContent);
		if (r.width > 1 && e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX === "visible") found.push("a cell is cut off: " + e.textContent);
	}
	return found;
})()`

// TestPages looks at the pages in a real browser: on a large screen and on a telephone,
// in light and dark colours, and with the keyboard alone.
func TestPages(t *testing.T) {
	served := visitDemo(t)
	b := startBrowser(t)
	t.Run("layout", func(t *testing.T) { b.t = t; checkLayout(t, b, "http://"+served.http) })
	t.Run("keyboard", func(t *testing.T) { b.t = t; checkKeyboard(t, b, served) })
}

func checkLayout(t *testing.T, b *browser, site string) {
	for _, path := range []string{
		"/", "/.info/urn:paradisec:AB1:001:A", "/.info/urn:paradisec:AB1:005:A", "/.info/ark:12345/x5xm4dd26", "/doi:10.5072/rivers-draft",
		"/ark:12345/x5mx4dd26", "/.info/20.500.12345/Mirrors", "/urn:paradisec:AB1:001:A?explain", "/api/v1",
	} {
		for _, width := range []int{1280, 800, 360} {
			for _, colours := range []string{"light", "dark"} {
				name := fmt.Sprintf("%s, %d wide, %s", path, width, colours)
				b.width(width, colours)
				b.open(site + path)
				var bad []string
				b.eval(badLayout, &bad)
				if len(bad) > 0 {
					t.Errorf("%s: %s", name, strings.Join(bad, "; "))
				}
				for _, problem := range b.complaints() {
					if !strings.Contains(problem, "the server responded with a status of 4") {
						t.Errorf("%s: %s", name, problem) // pages about errors are pages, too
					}
				}
			}
		}
	}
}

// checkKeyboard looks something up and follows where it leads, without a mouse.
func checkKeyboard(t *testing.T, b *browser, served *demo) {
	at := func(expression string) (text string) {
		t.Helper()
		b.eval(expression, &text)
		return text
	}
	// tabTo goes on to the next thing that can be used until it is the right one.
	tabTo := func(right string) {
		t.Helper()
		for range 40 {
			b.press("Tab", "Tab", 9, "")
			if at("String("+right+")") == "true" {
				return
			}
		}
		t.Fatalf("no way to %s with the keyboard", right)
	}
	enter := func() {
		t.Helper()
		b.press("Enter", "Enter", 13, "\r")
		b.wait()
	}
	b.width(1280, "light")
	b.open("http://" + served.http + "/")
	b.press("Tab", "Tab", 9, "")
	if got := at(`document.activeElement.textContent + (document.activeElement.getBoundingClientRect().left >= 0 ? ", seen" : ", hidden")`); got != "Skip to the content, seen" {
		t.Errorf("the first thing is %q", got)
	}
	tabTo(`document.activeElement.id === "id"`)
	b.do("Input.insertText", map[string]any{"text": " https://resolver.example/URN:Paradisec:AB1:001:A "}, nil)
	enter()
	if got := at(`location.pathname + " " + document.querySelector("h1").textContent`); got != "/.info/urn:paradisec:ab1:001:a Songs of the reef, side A" {
		t.Errorf("a search leads to %q", got)
	}
	tabTo(`document.activeElement.matches("td.address a")`)
	if got := at(`getComputedStyle(document.activeElement).outlineStyle`); got == "none" {
		t.Error("one can't see which link has the focus")
	}
	enter()
	if got := at(`location.host`); got != served.site {
		t.Errorf("the link leads to %q, want %q", got, served.site)
	}
}
