package lex

import "github.com/stele-id/stele"

// ParsePrefix reads the beginning of names for a scheme that knows what can follow one. The
// first of the ends that makes an identifier of the text, which may be cut there, decides. An
// end is in canonical form, and keeps its length in a canonical text. If there is none, the
// error is that of the text itself, which says where it is wrong.
func ParsePrefix(scheme stele.Scheme, text string, ends ...string) (stele.Prefix, stele.ID, error) {
	for _, end := range ends {
		id, err := scheme.Parse(text + end)
		if err != nil {
			continue
		}
		n := len(id.String()) - len(end)
		if scheme.Cuts(id, n) && reads(scheme, id.String()[:n]+end, id) {
			return id.Prefix(n), id, nil
		}
	}
	_, err := scheme.Parse(text)
	if err == nil {
		err = stele.Invalidf(scheme.Name(), len(text), "urn.wrong-cut", "names can't be cut here")
	}
	return stele.Prefix{}, stele.ID{}, err
}

// reads reports whether text is read as id. It shows that the end of a completed
// text is not in what a scheme leaves out, such as a URL's query.
func reads(scheme stele.Scheme, text string, id stele.ID) bool {
	again, err := scheme.Parse(text)
	return err == nil && again == id
}
