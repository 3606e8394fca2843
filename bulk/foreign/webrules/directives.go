package webrules

import (
	"strings"

	"github.com/stele-id/stele"
)

// Limits of a file.
const (
	MaxFile       = 4 << 20 // bytes
	maxDirectives = 10_000
	maxLine       = 64 << 10 // bytes of a directive, with the lines that continue it
	maxSections   = 50       // that stand in each other
	maxExpression = 4_096    // bytes
	maxSteps      = 400      // instructions of an expression

	// maxWork bounds what is done to find out what a folder answers, in steps of which a processor does some millions in a second.
	maxWork = 10_000_000

	// MaxTreeWork is the same for all folders of an import.
	MaxTreeWork = 100 * maxWork

	// fewConditions are those of a rule that count as one step with it.
	fewConditions = 4
)

// directive is a line of the configuration of Apache httpd; see "Syntax of the configuration files" in its manual.
type directive struct {
	line int
	text string // the whole, without the white space around it
	name string // in lower case
	rest string // what follows the name
	off  string // the section that decides whether it holds; "" if it always does

	inherited bool // it stands in the file of a folder above
}

// readDirectives reads a file. Lines of comments come as they are, without their mark. If there are more directives than are read,
// cut is the line of the next one.
func readDirectives(text string) (list []directive, comments []string, cut int) {
	var sections []string
	number := 0
	for more := true; more; {
		number++
		first := number
		var line string
		line, text, more = strings.Cut(text, "\n")
		line = strings.TrimSuffix(line, "\r")
		if more && strings.HasSuffix(line, `\`) {
			var whole strings.Builder
			for more && strings.HasSuffix(line, `\`) {
				whole.WriteString(line[:len(line)-1])
				line, text, more = strings.Cut(text, "\n")
				line = strings.TrimSuffix(line, "\r")
				number++
			}
			whole.WriteString(line)
			line = whole.String()
		}
		line = strings.Trim(line, " \t\v\f\r")
		switch {
		case line == "":
			if len(comments) > 0 && comments[len(comments)-1] != "" {
				comments = append(comments, "")
			}
			continue
		case line[0] == '#':
			comments = append(comments, strings.Trim(line, "# \t"))
			continue
		case strings.HasPrefix(line, "</"):
			if len(sections) > 0 {
				sections = sections[:len(sections)-1]
			}
			continue
		case line[0] == '<':
			off := sectionOff(line)
			if len(sections) > 0 && sections[len(sections)-1] != "" {
				off = sections[len(sections)-1]
			}
			if len(sections) < maxSections {
				sections = append(sections, off)
			}
			continue
		}
		name, rest := line, ""
		if i := strings.IndexAny(line, " \t"); i >= 0 {
			name, rest = line[:i], strings.TrimLeft(line[i:], " \t")
		}
		d := directive{line: first, text: line, name: strings.ToLower(name), rest: rest}
		if len(sections) > 0 {
			d.off = sections[len(sections)-1]
		}
		if d.off == skipped {
			continue
		}
		if len(list) == maxDirectives {
			return list, comments, first
		}
		list = append(list, d)
	}
	return list, comments, 0
}

// skipped marks a section that Apache httpd never reads on a server that has the usual modules.
const skipped = "-"

// sectionOff returns what the beginning of a section makes of the directives in it: "" if they hold.
func sectionOff(line string) string {
	words := strings.Fields(strings.ToLower(strings.Trim(line, "<>")))
	if len(words) == 2 && words[0] == "ifmodule" {
		module, not := strings.CutPrefix(strings.TrimPrefix(words[1], "mod_"), "!")
		module = strings.TrimPrefix(module, "mod_")
		switch strings.TrimSuffix(module, ".c") {
		case "rewrite", "rewrite_module", "alias", "alias_module", "headers", "headers_module", "mime", "mime_module", "negotiation", "dir":
			if not {
				return skipped
			}
			return ""
		}
	}
	return line
}

// words cuts the arguments of most directives: between white space, or in quotation marks, where a backslash stands
// before a mark or a backslash that is meant (ap_getword_conf of Apache httpd).
func words(text string) (list []string) {
	for text = strings.TrimLeft(text, " \t"); text != ""; text = strings.TrimLeft(text, " \t") {
		var b strings.Builder
		quote := byte(0)
		i := 0
		if text[0] == '"' || text[0] == '\'' {
			quote, i = text[0], 1
		}
		for ; i < len(text); i++ {
			c := text[i]
			if quote != 0 && c == quote {
				i++
				break
			}
			if quote == 0 && (c == ' ' || c == '\t') {
				break
			}
			if c == '\\' && i+1 < len(text) && (text[i+1] == '\\' || quote != 0 && text[i+1] == quote) {
				i++
				c = text[i]
			}
			b.WriteByte(c)
		}
		list = append(list, b.String())
		text = text[i:]
	}
	return list
}

// rewriteWords cuts the arguments of RewriteRule and RewriteCond: mod_rewrite reads them itself, and leaves backslashes to
// the regular expression. A blank after a backslash does not end an argument.
func rewriteWords(text string) (list []string) {
	for text = strings.TrimLeft(text, " \t"); text != ""; text = strings.TrimLeft(text, " \t") {
		quote := byte(0)
		if text[0] == '"' || text[0] == '\'' {
			quote, text = text[0], text[1:]
		}
		i := 0
		for ; i < len(text); i++ {
			if text[i] == quote && quote != 0 || quote == 0 && (text[i] == ' ' || text[i] == '\t') {
				break
			}
			if text[i] == '\\' && i+1 < len(text) && (text[i+1] == ' ' || text[i+1] == '\t') {
				i++
			}
		}
		list = append(list, text[:i])
		text = text[min(len(text), i+1):]
	}
	return list
}

// refusal says why a directive can't be read.
func refusal(code, text string, args ...any) error { return stele.Messagef(code, text, args...) }
