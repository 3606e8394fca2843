package web

import "strings"

// Block is a piece of an operator's text.
type Block struct {
	Kind  string // "p", "h2", "h3" or "ul"
	Spans []Span
	Items [][]Span // of a list
}

// Span is a piece of a line.
type Span struct {
	Kind string // "", "strong", "em" or "code"
	Text string
	URL  string // of a link; may be empty
}

// maxBlocks is how many pieces of a text are shown.
const maxBlocks = 1000

// ParseText reads a text of an operator: plain text with empty lines between paragraphs, and of
// Markdown headings (#, ##), lists (-, *), **strong**, *emphasis*, `code` and [links](URL). All
// else is text: there is no HTML in it.
func ParseText(text string) (blocks []Block) {
	var lines []string
	end := func() {
		if len(lines) > 0 {
			blocks = append(blocks, Block{Kind: "p", Spans: parseSpans(strings.Join(lines, " "))})
		}
		lines = nil
	}
	for line := range strings.Lines(strings.ReplaceAll(text, "\r\n", "\n")) {
		line = strings.TrimSpace(line)
		if len(blocks) == maxBlocks {
			break
		}
		item, listed := cutAny(line, "- ", "* ")
		deep, isDeep := cutAny(line, "## ", "### ")
		high, isHigh := strings.CutPrefix(line, "# ")
		switch {
		case line == "":
			end()
			if n := len(blocks); n > 0 && blocks[n-1].Kind == "ul" {
				blocks = append(blocks, Block{}) // the next item begins another list
			}
		case isDeep:
			end()
			blocks = append(blocks, Block{Kind: "h3", Spans: parseSpans(deep)})
		case isHigh:
			end()
			blocks = append(blocks, Block{Kind: "h2", Spans: parseSpans(high)})
		case listed:
			end()
			if n := len(blocks); n == 0 || blocks[n-1].Kind != "ul" {
				blocks = append(blocks, Block{Kind: "ul"})
			}
			last := &blocks[len(blocks)-1]
			last.Items = append(last.Items, parseSpans(item))
		case len(lines) == 0 && len(blocks) > 0 && blocks[len(blocks)-1].Kind == "ul": // an item goes on
			last := &blocks[len(blocks)-1]
			n := len(last.Items) - 1
			last.Items[n] = append(last.Items[n], parseSpans(" "+line)...)
		default:
			lines = append(lines, line)
		}
	}
	end()
	return withoutEmpty(blocks)
}

func withoutEmpty(blocks []Block) (kept []Block) {
	for _, b := range blocks {
		if b.Kind == "h3" && !hasHeading(kept) {
			b.Kind = "h2" // no level is left out
		}
		if b.Kind != "" {
			kept = append(kept, b)
		}
	}
	return kept
}

func hasHeading(blocks []Block) bool {
	for _, b := range blocks {
		if b.Kind == "h2" {
			return true
		}
	}
	return false
}

func cutAny(line string, marks ...string) (string, bool) {
	for _, mark := range marks {
		if rest, ok := strings.CutPrefix(line, mark); ok {
			return rest, true
		}
	}
	return line, false
}

// parseSpans reads a line.
func parseSpans(line string) (spans []Span) {
	plain := ""
	add := func(s Span) {
		if plain != "" {
			spans = append(spans, Span{Text: plain})
			plain = ""
		}
		if s.Text != "" {
			spans = append(spans, s)
		}
	}
	for line != "" {
		s, rest := parseSpan(line)
		if s.Text == "" {
			plain += line[:1]
			line = line[1:]
			continue
		}
		add(s)
		line = rest
	}
	add(Span{})
	return spans
}

// parseSpan reads what a line begins with, if that is marked; otherwise the text is empty.
func parseSpan(line string) (Span, string) {
	for _, of := range []struct{ mark, kind string }{{"**", "strong"}, {"*", "em"}, {"`", "code"}} {
		if rest, ok := strings.CutPrefix(line, of.mark); ok {
			if text, after, closed := strings.Cut(rest, of.mark); closed && text != "" && text[0] != ' ' && text[len(text)-1] != ' ' {
				return Span{Kind: of.kind, Text: text}, after
			}
			return Span{}, line
		}
	}
	if rest, ok := strings.CutPrefix(line, "["); ok {
		text, after, closed := strings.Cut(rest, "](")
		if url, end, ok := strings.Cut(after, ")"); closed && ok && text != "" && href(url) != "" {
			return Span{Text: text, URL: url}, end
		}
	}
	return Span{}, line
}
