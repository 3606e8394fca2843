package oai

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"

	"github.com/stele-id/stele"
)

// token is a resumption token: all that the next page of a list needs. The server keeps nothing, so that any server of a registry
// can continue a list, and a harvester can ask for a page again. A token gives its holder nothing that arguments do not give:
// what it says is judged as they are, and names that are not listed stay hidden whatever it says.
type token struct {
	Generation string `json:"g"` // in another one the cursor means another place
	Format     string `json:"p"`
	Set        string `json:"s,omitempty"`
	From       string `json:"f,omitempty"`
	Until      string `json:"u,omitempty"`
	Count      uint64 `json:"n"` // how many records came before

	// Where the list continues: after a name, or after a change.
	Scheme string `json:"k,omitempty"`
	After  string `json:"a,omitempty"`
	Change uint64 `json:"c,omitempty"`
	Feed   bool   `json:"o,omitempty"` // the list is made of the change feed
}

// String writes the token.
func (t *token) String() string {
	text, _ := json.Marshal(t) // of texts and numbers
	return base64.RawURLEncoding.EncodeToString(text)
}

// parseToken reads what String writes, of the present generation.
func parseToken(text string, generation stele.GenerationID) (*token, *fault) {
	wrong := faultf(badResumptionToken, "this is not a resumption token of this repository; begin the list again")
	data, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, wrong
	}
	t := new(token)
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(t); err != nil {
		return nil, wrong
	}
	if _, err := d.Token(); err != io.EOF || t.String() != text {
		return nil, wrong
	}
	if t.Generation != generation.String() {
		return nil, faultf(badResumptionToken, "the registry was restored since this list began; begin it again")
	}
	_, known := formatOf(t.Format)
	_, _, bad := parseDates(t.From, t.Until)
	if !known || bad != nil || t.Set != "" && !isSetSpec(t.Set) || t.Feed && (t.Scheme != "" || t.After != "") || !t.Feed && t.Change != 0 {
		return nil, wrong
	}
	return t, nil
}
