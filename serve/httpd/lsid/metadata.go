package lsid

import (
	"net/http"
	"strings"
	"time"

	"github.com/stele-id/stele/serve/httpd/describe"
)

// rdfTypes are two spellings of the type of RDF/XML: IBM's client asks for the first, lsid-perl for the second (section
// 3).
var rdfTypes = [...]string{"application/xml+rdf", "application/rdf+xml"}

// maxFormats is how many formats a client may list.
const maxFormats = 32

// foreignTerm is the term by which metadata say that another authority knows of a name (section 6), in the vocabulary
// that IBM proposed.
const (
	foreignVocabulary = "urn:lsid:i3c.org:predicates:"
	foreignTerm       = "foreignauthority"
)

// chosen is the format of an answer, and the type by which the client asked for it.
type chosen struct {
	describe.Format
	asked string
}

// chooseFormat returns the first of the formats in a list that there is: RDF/XML if the client lists none.
func chooseFormat(accepted string) (chosen, error) {
	rdf, _ := describe.Named("rdfxml")
	n := 0
	for item := range strings.SplitSeq(accepted, ",") {
		kind, _, _ := strings.Cut(item, ";")
		kind = strings.ToLower(strings.TrimSpace(kind))
		if kind == "" {
			continue
		}
		if n++; n > maxFormats {
			break
		}
		if kind == rdfTypes[0] || kind == rdfTypes[1] {
			return chosen{rdf, kind}, nil
		}
		if kind == "*/*" || kind == "application/*" {
			return chosen{rdf, rdfTypes[1]}, nil
		}
		if f, ok := describe.Find(kind); ok {
			return chosen{f, kind}, nil
		}
	}
	if n == 0 {
		return chosen{rdf, rdfTypes[1]}, nil
	}
	return chosen{}, failf(noFormat, "metadata are not available in %q; ask for %s", brief(accepted), rdfTypes[1])
}

// served is the Content-Type of an answer: the one that was asked for, with the charset where the format has one.
func (f *chosen) served() string {
	if _, parameters, ok := strings.Cut(f.Served, ";"); ok && strings.HasPrefix(f.asked, "text/") {
		return f.asked + ";" + parameters
	}
	return f.asked
}

// metadata answers getMetadata: with the description of the record, whose statements are about the name that was asked
// for (section 6). Of a withdrawn record it says so.
func (c *call) metadata() error {
	done, err := c.site.Charge(costMetadata)
	if err != nil {
		return err
	}
	defer done()
	accepted, _ := c.arguments.get("acceptedFormats")
	format, ferr := chooseFormat(accepted)
	f, err := c.find()
	if err != nil {
		return err
	}
	if ferr != nil {
		return ferr
	}
	subject := c.site.Subject(f.res.Record, f.res.Namespace)
	subject.About = f.id.String()
	if subject.Also, err = c.foreign(&f); err != nil {
		return err
	}
	text, err := format.Append(nil, subject)
	if err != nil {
		return err
	}
	until := c.keep(&f)
	var sent bool
	if c.soap {
		results := []result{{"format", format.asked}}
		if !until.IsZero() {
			// IBM's client can't read an offset instead of Z (section 4).
			results = append(results, result{"expiration", until.UTC().Format("2006-01-02T15:04:05Z")})
		}
		sent = c.sendAttachment(text, results...)
	} else {
		sent = c.site.Send(http.StatusOK, format.served(), text)
	}
	if sent {
		c.site.Described(f.res.Record)
	}
	return nil
}

// keep says in the head of an answer until when it holds, and returns that; zero if it must not be kept. Clients of this
// protocol read Expires only (section 3).
func (c *call) keep(f *found) (until time.Time) {
	c.site.Keep(&f.res)
	if f.res.Private || !f.res.Record.IsPublic() || f.res.TTL == 0 {
		return time.Time{}
	}
	until = c.o.Now().Add(time.Duration(f.res.TTL) * time.Second)
	c.w.Header().Set("Expires", until.UTC().Format(http.TimeFormat))
	return until
}
