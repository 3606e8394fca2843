package webrules

import (
	"regexp"
	"slices"
	"strings"

	"github.com/stele-id/stele"
)

// condition is a RewriteCond.
type condition struct {
	on   subject
	not  bool
	or   bool // the next condition is enough, too
	re   *regexp.Regexp
	text string // what is compared, where there is no expression
	cmp  byte   // '=', 'f' (a file) or 'd' (a folder) where there is no expression
}

// subject is what a condition looks at.
type subject uint8

const (
	onAccept subject = iota
	onAgent
	onURI      // the path of the request
	onFilename // the file that the path names
)

// client is what a request says, beside its path.
type client struct{ accept, agent string }

// Clients that are tried: one that accepts a media type, and one that takes anything.
const (
	browser = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
	program = "curl/8.14.1"
	anyType = "*/*"
)

// clientOf returns a client that accepts a media type. Browsers are those that accept pages.
func clientOf(mediaType string) client {
	if mediaType == "text/html" || mediaType == "application/xhtml+xml" {
		return client{mediaType, browser}
	}
	return client{mediaType, program}
}

// usualTypes are media types that are tried on every file with conditions: an expression may match some that it does not
// spell out, such as rdf or text/.
var usualTypes = []string{
	"text/html", "application/xhtml+xml", "text/turtle", "application/x-turtle", "application/rdf+xml", "application/ld+json", "application/json",
	"application/n-triples", "text/n3", "text/rdf+n3", "application/n-quads", "application/trig", "application/owl+xml", "application/xml", "text/xml",
	"text/plain", "text/csv", "text/markdown", "text/yaml", "application/yaml", "application/pdf", "application/schema+json", "application/sparql-results+json",
}

var typeText = regexp.MustCompile(`[a-z]+/[a-z0-9][a-z0-9.+-]*[a-z0-9]`)

// typesIn returns the media types that the conditions of rules name.
func typesIn(list []*Rule) []string {
	types := slices.Clone(usualTypes)
	for _, r := range list {
		for _, c := range r.conditions {
			if c.on != onAccept {
				continue
			}
			for _, t := range typeText.FindAllString(strings.ToLower(strings.ReplaceAll(c.text, `\`, "")), 50) {
				if stele.IsMediaType(t) && !slices.Contains(types, t) && len(types) < 200 {
					types = append(types, t)
				}
			}
		}
	}
	return types
}

// parseCondition reads the arguments of a RewriteCond.
func parseCondition(text string) (c condition, err error) {
	args := rewriteWords(text)
	if len(args) < 2 {
		return c, refusal("webrules.condition-incomplete", "the condition has no pattern")
	}
	variable := strings.ToUpper(strings.TrimSuffix(strings.TrimPrefix(args[0], "%{"), "}"))
	switch variable {
	case "HTTP_ACCEPT", "HTTP:ACCEPT":
		c.on = onAccept
	case "HTTP_USER_AGENT", "HTTP:USER-AGENT":
		c.on = onAgent
	case "REQUEST_URI":
		c.on = onURI
	case "REQUEST_FILENAME", "SCRIPT_FILENAME":
		c.on = onFilename
	default:
		return c, refusal("webrules.condition-unknown", "a condition looks at {variable}, which decides nothing here", args[0])
	}
	fold := false
	if len(args) > 2 {
		flags, ok := strings.CutPrefix(args[2], "[")
		flags, closed := strings.CutSuffix(flags, "]")
		if !ok || !closed {
			return c, refusal("webrules.flags-invalid", "Apache httpd does not read the flags {flags}", args[2])
		}
		for _, flag := range strings.Split(flags, ",") {
			switch strings.ToUpper(strings.TrimSpace(flag)) {
			case "NC", "NOCASE":
				fold = true
			case "OR", "ORNEXT":
				c.or = true
			case "NV", "NOVARY", "":
			default:
				return c, refusal("webrules.flag-unknown", "the flag {flag} has no counterpart here", flag)
			}
		}
	}
	pattern := args[1]
	if pattern, c.not = strings.CutPrefix(pattern, "!"); c.on == onFilename {
		switch pattern {
		case "-f", "-s", "-l", "-F", "-L", "-h", "-x":
			c.cmp = 'f'
		case "-d":
			c.cmp = 'd'
		default:
			return c, refusal("webrules.condition-filename", "a condition compares the name of a file on the server")
		}
		return c, nil
	}
	c.text = pattern
	if len(pattern) > 1 && strings.IndexByte("<>-=", pattern[0]) >= 0 {
		if pattern[0] != '=' {
			return c, refusal("webrules.condition-comparison", "a condition compares by {pattern}, and not by an expression", pattern)
		}
		c.cmp, c.text = '=', strings.Trim(pattern[1:], `"`)
		return c, nil
	}
	tree, _, err := parseExpression(pattern, fold)
	if err != nil {
		return c, err
	}
	c.re, _, err = compiled(tree)
	return c, err
}

// isOfName reports whether the condition depends on the name.
func (c *condition) isOfName() bool { return c.on == onURI }

// holds reports whether a condition is true. The path of the folder ends with a slash.
func (c *condition) holds(who client, folder, name string, isFolder func(string) bool) bool {
	var yes bool
	text := who.accept
	switch c.on {
	case onAgent:
		text = who.agent
	case onURI:
		text = folder + name
	case onFilename:
		yes = c.cmp == 'd' && isFolder(name)
		return yes != c.not
	}
	if c.cmp == '=' {
		yes = text == c.text
	} else {
		yes = c.re.MatchString(text)
	}
	return yes != c.not
}

// allHold reports whether the conditions of a rule hold: all of them, where those with the flag OR are one with those that follow.
func allHold(list []condition, who client, folder, name string, isFolder func(string) bool) bool {
	for i := 0; i < len(list); i++ {
		any := list[i].holds(who, folder, name, isFolder)
		for list[i].or {
			if i+1 == len(list) { // nothing follows: Apache httpd applies the rule
				any = true
				break
			}
			i++
			any = any || list[i].holds(who, folder, name, isFolder)
		}
		if !any {
			return false
		}
	}
	return true
}
