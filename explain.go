package stele

import (
	"bytes"
	"encoding/json"
)

// Explanation is all that a scheme can tell about an identifier by looking at
// it. Its reader is a person with a card in front of them, or a program with the
// same in JSON.
type Explanation struct {
	ID        ID
	Form      string     // which of the scheme's forms: "rep", "ibip", "doi"
	Parts     Parts      // what is encoded, in the order of reading
	Spellings []Spelling // other ways to write the same name
	Warnings  []string   // what its owner or reader should know; whole sentences
}

// Spelling is another way to write an identifier.
type Spelling struct {
	Name string `json:"name"` // the convention that writes it so: "URL", "RFC 4452"
	Text string `json:"text"`
}

// Part is one thing that is encoded in an identifier.
type Part struct {
	Name  string // stable: programs rely on it
	Value any    // a string, an int or a []string; what JSON shows
	Note  string // for people: what Value alone does not say; may be empty
}

// Parts is a list of parts. In JSON it is an object, in the order of the list.
type Parts []Part

// Get returns the value of the part of that name, or nil.
func (p Parts) Get(name string) any {
	for _, part := range p {
		if part.Name == name {
			return part.Value
		}
	}
	return nil
}

// MarshalJSON writes the names and values as an object, without the notes.
func (p Parts) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, part := range p {
		if i > 0 {
			b.WriteByte(',')
		}
		for _, v := range [...]any{part.Name, part.Value} {
			enc, err := json.Marshal(v)
			if err != nil {
				return nil, err
			}
			b.Write(enc)
			b.WriteByte(':')
		}
		b.Truncate(b.Len() - 1)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}
