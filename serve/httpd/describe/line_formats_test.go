package describe

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stele-id/stele"
)

// element is a line of ANVL, unfolded and decoded.
type element struct {
	label, value string
}

// readANVL reads ANVL as its draft says: a line that begins with white space goes
// on with the one before it, and percent-encoding is undone last.
func readANVL(text string) (all []element, err error) {
	var lines []string
	for l := range strings.Lines(text) {
		l = strings.TrimSuffix(l, "\n")
		if rest := strings.TrimLeft(l, " \t"); rest != l && len(lines) > 0 {
			lines[len(lines)-1] += " " + rest
		} else {
			lines = append(lines, l)
		}
	}
	for _, l := range lines {
		label, value, ok := strings.Cut(l, ":")
		if !ok || strings.HasPrefix(l, "#") {
			return nil, fmt.Errorf("no element: %q", l)
		}
		e := element{}
		var err1, err2 error
		e.label, err1 = url.PathUnescape(label)
		e.value, err2 = url.PathUnescape(strings.TrimPrefix(value, " "))
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

// TestANVLComesBack reads ANVL back and finds all metadata in it.
func TestANVLComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySubject().Draw(t, "subject")
		f, _ := Named("anvl")
		text := string(mustAppend(t, f, s))
		all, err := readANVL(text)
		if err != nil {
			t.Fatalf("%v in:\n%s", err, text)
		}
		if !slices.Contains(strings.Split(text, "\n"), "erc-support:") || strings.Count("\n"+text, "\nerc:") != 1 {
			t.Fatalf("segments are not right:\n%s", text)
		}
		if s.Record.Redacted {
			return
		}
		for key, value := range s.Record.Metadata {
			if value = clean(value); value == "" || key == "" {
				continue
			}
			key = strings.ToValidUTF8(key, "\ufffd")
			same := func(e element) bool { return strings.EqualFold(e.label, key) && e.value == value }
			if !slices.ContainsFunc(all, same) && !strings.ContainsRune(key, 0xfffd) {
				t.Fatalf("%q: %q is not in %q", key, value, all)
			}
		}
	})
}

// TestANVLFolds folds long values, with spaces that must not get lost.
func TestANVLFolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		for range rapid.IntRange(8, 30).Draw(t, "words") {
			b.WriteString(rapid.StringMatching(`[a-zé%:#]{1,15} {1,3}`).Draw(t, "word"))
		}
		want := strings.TrimSpace(b.String())
		w := anvlText{}
		w.field("x", want)
		if got, err := readANVL(string(w.b)); err != nil || len(got) != 1 || got[0] != (element{"x", want}) {
			t.Fatalf("%q is read as %q, %v", w.b, got, err)
		}
	})
}

// TestBibTeXBalanced counts braces as BibTeX does, and finds each entry closed at
// its end and nowhere before.
func TestBibTeXBalanced(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, _ := Named("bibtex")
		got := string(mustAppend(t, f, anySubject().Draw(t, "subject")))
		depth := 0
		for i, c := range got {
			switch c {
			case '{':
				depth++
			case '}':
				depth--
			}
			if depth == 0 && i > strings.IndexByte(got, '{') && strings.TrimSpace(got[i+1:]) != "" {
				t.Fatalf("the entry ends at byte %d:\n%s", i, got)
			}
		}
		if depth != 0 {
			t.Fatalf("%d braces are open:\n%s", depth, got)
		}
		key, _, ok := strings.Cut(strings.TrimPrefix(got[strings.IndexByte(got, '{'):], "{"), ",")
		if !ok || key == "" || len(key) > maxKey+9 || strings.ContainsAny(key, " \t\n\"#%'()={}~\\") {
			t.Fatalf("key %q", key)
		}
	})
}

func TestTeX(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{`50% & $5 #1 a_b`, `50\% \& \$5 \#1 a\_b`},
		{`{x`, `\textbraceleft{}x`},
		{`x}`, `x\textbraceright{}`},
		{`\{`, `\textbackslash{}\textbraceleft{}`},
		{`~^`, `\textasciitilde{}\textasciicircum{}`},
		{"two\nlines", `two lines`},
	} {
		if got := tex(tt.text); got != tt.want {
			t.Errorf("tex(%q) = %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestEntryKey(t *testing.T) {
	seen := make(map[string]string)
	for _, id := range []string{"ark:12345/x1", "ark:12345/x_1", "ark:12345/x 1", "10.1000/{}", "10.1000/,,", "漢字", strings.Repeat("a", 200), strings.Repeat("a", 201)} {
		key := entryKey(id)
		if before, ok := seen[key]; ok {
			t.Errorf("%q and %q have the key %q", before, id, key)
		}
		seen[key] = id
	}
	if seen["ark:12345/x1"] == "" {
		t.Error("a good identifier is not its own key")
	}
}

// TestLinkHeader reads Link values back as RFC 8288, appendix B.2 says, whatever
// is in them.
func TestLinkHeader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Link{URL: text().Draw(t, "url"), Rel: "item", Type: text().Draw(t, "type"), Language: text().Draw(t, "language"), Anchor: text().Draw(t, "anchor")}
		header := AppendLinks(nil, []Link{want, {URL: base, Rel: "linkset"}})
		got := readLinks(t, string(header))
		if len(got) != 2 || got[0].URL != encode(want.URL) || got[0].Rel != "item" || got[0].Anchor != encode(want.Anchor) || got[1] != (Link{URL: base, Rel: "linkset"}) {
			t.Fatalf("%q is read as %+v", header, got)
		}
		if got[0].Type != "" && got[0].Type != want.Type || got[0].Language != "" && got[0].Language != want.Language {
			t.Fatalf("%q is read as %+v", header, got)
		}
	})
}

// TestLinksOfAny reads the links of records with bad text back.
func TestLinksOfAny(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		links := Links(anySubject().Draw(t, "subject"))
		header := string(AppendLinks(nil, links))
		got := readLinks(t, header)
		if len(got) != len(links) || len(header) > maxLinkBytes+512 {
			t.Fatalf("%d links are %d in %q", len(links), len(got), header)
		}
		for _, l := range got {
			if protocol, _, ok := strings.Cut(l.URL, "://"); !ok || !slices.Contains(strings.Fields("http https ftp ftps sftp rsync rtsp"), strings.ToLower(protocol)) {
				t.Fatalf("a link leads to %q", l.URL)
			}
		}
	})
}

// readLinks reads the value of a Link header.
func readLinks(t interface{ Fatalf(string, ...any) }, header string) (links []Link) {
	for i := range len(header) {
		if header[i] < ' ' || header[i] > '~' {
			t.Fatalf("byte %d of %q can't stand in a header", i, header)
		}
	}
	for rest := header; rest != ""; {
		var l Link
		var ok bool
		if rest, ok = strings.CutPrefix(rest, "<"); !ok {
			t.Fatalf("no < at %q", rest)
		}
		l.URL, rest, ok = strings.Cut(rest, ">")
		if !ok {
			t.Fatalf("no > at %q", rest)
		}
		for {
			var name, value string
			if rest, ok = strings.CutPrefix(rest, "; "); !ok {
				break
			}
			name, rest, _ = strings.Cut(rest, "=")
			if value, rest, ok = parameter(rest); !ok {
				t.Fatalf("no value at %q", rest)
			}
			switch name {
			case "rel":
				l.Rel = value
			case "type":
				l.Type = value
			case "hreflang":
				l.Language = value
			case "anchor":
				l.Anchor = value
			default:
				t.Fatalf("attribute %q", name)
			}
		}
		links = append(links, l)
		if rest == "" {
			break
		}
		if rest, ok = strings.CutPrefix(rest, ", "); !ok {
			t.Fatalf("no comma at %q", rest)
		}
	}
	return links
}

func parameter(s string) (value, rest string, ok bool) {
	quoted, ok := strings.CutPrefix(s, `"`)
	if !ok {
		end := strings.IndexAny(s, ";, ")
		if end < 0 {
			end = len(s)
		}
		return s[:end], s[end:], end > 0
	}
	var b strings.Builder
	for i := 0; i < len(quoted); i++ {
		switch c := quoted[i]; c {
		case '"':
			return b.String(), quoted[i+1:], true
		case '\\':
			if i++; i == len(quoted) {
				return "", s, false
			}
			fallthrough
		default:
			b.WriteByte(quoted[i])
		}
	}
	return "", s, false
}

// What no table of citations has: records of which little is known, and bad text.
func TestCitation(t *testing.T) {
	for _, tt := range []struct {
		metadata stele.Metadata
		want     string
	}{
		{nil, "ark:12345/x1. (n.d.)."},
		{stele.Metadata{"what": "Alone", "when": "circa 1900", "publisher": "Press"}, "Alone. (circa 1900). Press."},
		{stele.Metadata{"who": "(:unkn) Anonymous", "what": "(:unav)"}, "Anonymous. (n.d.)."},
		{stele.Metadata{"who": "\u202eevil\r\nX: y", "what": "a\nb"}, "\ufffdevil X: y. (n.d.). a b."},
	} {
		s := subject(&stele.Record{ID: id(t, "ark", "ark:12345/x1"), State: stele.Active, Metadata: tt.metadata})
		if got, want := Citation(s), tt.want+" https://resolver.example/ark:12345/x1"; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
