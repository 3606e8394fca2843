// Package handlejson is the JSON form of handle values that the Handle System's own software
// speaks: its REST interface, and the files that it exports. There is one strict reader and one
// writer. The package knows neither HTTP nor records; a record's own form is that of package
// document.
package handlejson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/stele-id/stele"
)

// Value is a handle value as encoding/json writes it. The order of members is the reference
// implementation's.
type Value struct {
	Index       uint32      `json:"index"`
	Type        string      `json:"type"`
	Data        Data        `json:"data"`
	Permissions string      `json:"permissions,omitempty"`
	TTL         any         `json:"ttl"` // a number of seconds, or a time
	Timestamp   string      `json:"timestamp,omitempty"`
	References  []Reference `json:"references,omitempty"`
}

// Reference points at a value of a handle.
type Reference struct {
	Handle string `json:"handle"`
	Index  uint32 `json:"index"`
}

// Show returns a value as the reference implementation shows it. Its types HS_ADMIN, HS_VLIST,
// HS_SITE and HS_PUBKEY are taken apart, and bits that have no name are not shown.
func Show(v *stele.HandleValue) Value { return shape(v, Describe(v.Type, v.Data)) }

// Exact returns a value from which the reader makes the same value again: data that its parts
// do not say completely is base64.
func Exact(v *stele.HandleValue) Value { return shape(v, exactly(v.Type, v.Data)) }

func shape(v *stele.HandleValue, data Data) Value {
	shown := Value{Index: v.Index, Type: v.Type, Data: data, TTL: v.TTL}
	if v.Permissions != stele.DefaultPermissions {
		// Administrators' reading and writing, then the public's: the bits' own order.
		shown.Permissions = fmt.Sprintf("%04b", uint8(v.Permissions))
	}
	if v.TTLAbsolute {
		shown.TTL = moment(v.TTL)
	}
	if v.Timestamp != 0 {
		shown.Timestamp = moment(v.Timestamp)
	}
	for _, ref := range v.References {
		shown.References = append(shown.References, Reference(ref))
	}
	return shown
}

func moment(seconds uint32) string {
	return time.Unix(int64(seconds), 0).UTC().Format(time.RFC3339)
}

// AppendValue appends a value on one line, as Exact has it.
func AppendValue(b []byte, v *stele.HandleValue) []byte {
	out := bytes.NewBuffer(b)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(Exact(v)) // it is made of texts, numbers and lists, which can always be written
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// Quote returns a text as a string of JSON.
func Quote(text string) []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a string can always be written
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
