package ezidrecord

import (
	"strings"

	"github.com/stele-id/stele"
)

// Fields in which a record keeps what EZID itself has, and what has no other place. No element is kept in the first two: those
// that begin with an underscore are EZID's own.
const (
	kept        = "ezid."
	keptProfile = kept + Profile
	keptExport  = kept + Export
)

// profiles are the elements of each profile, and the fields that they are.
var profiles = map[string]map[string]string{
	"erc": {"erc.who": stele.Who, "erc.what": stele.What, "erc.when": stele.When},
	"dc": {
		"dc.creator": stele.Who, "dc.title": stele.What, "dc.date": stele.When, "dc.publisher": "publisher", "dc.type": "type",
		"dc.description": "description", "dc.contributor": "contributor", "dc.language": "language", "dc.rights": "rights", "dc.subject": "subject",
	},
	"datacite": {
		"datacite.creator": stele.Who, "datacite.title": stele.What, "datacite.publicationyear": stele.When,
		"datacite.publisher": "publisher", "datacite.resourcetype": "type",
	},
}

// named are the elements of fields: the same, the other way round.
var named = func() map[string]map[string]string {
	all := make(map[string]map[string]string)
	for profile, fields := range profiles {
		all[profile] = make(map[string]string)
		for name, field := range fields {
			all[profile][field] = name
		}
	}
	return all
}()

// field returns the field of an element in a profile; "" if no field can have it, because its name is too long.
func field(profile, name string) string {
	if key := profiles[profile][name]; key != "" {
		return key
	}
	if word, ok := strings.CutPrefix(name, kept); ok && isStatusWord(word) {
		return word
	}
	if _, other := named[profile][name]; !other && stele.IsField(name) && !strings.HasPrefix(name, kept) {
		return name
	}
	if key := kept + escape(name); stele.IsField(key) {
		return key
	}
	return ""
}

// elementOf returns the element of a field in a profile.
func elementOf(profile, key string) string {
	if name := named[profile][key]; name != "" {
		return name
	}
	if isStatusWord(key) {
		return kept + key
	}
	if rest, ok := strings.CutPrefix(key, kept); ok {
		if name, ok := unescape(rest); ok && (field(profile, name) == key || strings.HasPrefix(name, "_")) {
			return name
		}
	}
	return key
}

// isStatusWord reports whether a name is the label of the first line of an answer, by which clients know how a request went. No
// element is shown under it: a client that reads labels into a map would take its value for that line.
func isStatusWord(name string) bool { return name == "success" || name == "error" }

// escape writes an element's name in the characters of fields: a hyphen and two hexadecimal digits for every other byte.
func escape(name string) string {
	const digits = "0123456789abcdef"
	b := make([]byte, 0, len(name))
	for i := range len(name) {
		c := name[i]
		if isPlain(c) {
			b = append(b, c)
		} else {
			b = append(b, '-', digits[c>>4], digits[c&0xf])
		}
	}
	return string(b)
}

func isPlain(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '.' || c == '_'
}

// unescape reads what escape has written; false if escape would write it in another way.
func unescape(text string) (string, bool) {
	b := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == '-' {
			if i+2 >= len(text) {
				return "", false
			}
			high, low := strings.IndexByte("0123456789abcdef", text[i+1]), strings.IndexByte("0123456789abcdef", text[i+2])
			if high < 0 || low < 0 {
				return "", false
			}
			c = byte(high<<4 | low)
			i += 2
			if isPlain(c) {
				return "", false
			}
		}
		b = append(b, c)
	}
	return string(b), len(b) > 0
}
