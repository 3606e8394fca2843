package document

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
)

// plainRecord is what encoding/json would read a record into.
type plainRecord struct {
	ID          string            `json:"id"`
	Spelling    string            `json:"spelling"`
	Aliases     []string          `json:"aliases"`
	State       string            `json:"state"`
	Tombstone   *plainTombstone   `json:"tombstone"`
	URL         string            `json:"url"`
	Targets     []plainTarget     `json:"targets"`
	Metadata    map[string]string `json:"metadata"`
	Persistence plainPersistence  `json:"persistence"`
	Values      []plainValue      `json:"values"`
	Readers     []string          `json:"readers"`
	Version     uint64            `json:"version"`
	Created     string            `json:"created"`
	Modified    string            `json:"modified"`
	By          string            `json:"by"`
	Redacted    bool              `json:"redacted"`
}

type plainTombstone struct {
	Reason      string `json:"reason"`
	At          string `json:"at"`
	Replacement string `json:"replacement"`
}

type plainTarget struct {
	Service    string  `json:"service"`
	URL        string  `json:"url"`
	Type       string  `json:"type"`
	Language   string  `json:"language"`
	Order      *uint16 `json:"order"`
	Preference *uint16 `json:"preference"`
	TTL        uint32  `json:"ttl"`
	Status     int     `json:"status"`
	Partial    bool    `json:"partial"`
}

type plainPersistence struct {
	Level     string `json:"level"`
	Until     string `json:"until"`
	Statement string `json:"statement"`
}

type plainValue struct {
	Index       uint32    `json:"index"`
	Type        string    `json:"type"`
	Data        []byte    `json:"data"`
	TTL         *uint32   `json:"ttl"`
	TTLAbsolute bool      `json:"ttlAbsolute"`
	Timestamp   string    `json:"timestamp"`
	Permissions *[]string `json:"permissions"`
	References  []struct {
		Handle string `json:"handle"`
		Index  uint32 `json:"index"`
	} `json:"references"`
}

// record makes a record of it, by ways other than the document's own.
func (p *plainRecord) record(s *stele.Schemes) (*stele.Record, error) {
	id, err := s.Parse(p.ID)
	if err != nil {
		return nil, err
	}
	r := &stele.Record{
		ID: id, State: stele.Active, Metadata: p.Metadata, Readers: p.Readers,
		Version: p.Version, Created: plainTime(p.Created), Modified: plainTime(p.Modified), By: p.By, Redacted: p.Redacted,
	}
	r.Persistence = stele.Persistence{Level: stele.Level(p.Persistence.Level), Until: p.Persistence.Until, Statement: p.Persistence.Statement}
	if p.State != "" {
		r.State = stele.State(p.State)
	}
	r.Spelling = p.ID
	if p.Spelling != "" {
		r.Spelling = p.Spelling
	}
	if r.Spelling == id.String() {
		r.Spelling = ""
	}
	for _, alias := range p.Aliases {
		id, err := s.Parse(alias)
		if err != nil {
			return nil, err
		}
		r.Aliases = append(r.Aliases, id)
	}
	if p.URL != "" {
		p.Targets = append(p.Targets, plainTarget{URL: p.URL})
	}
	for _, t := range p.Targets {
		r.Targets = append(r.Targets, t.target())
	}
	for _, v := range p.Values {
		r.Values = append(r.Values, v.value())
	}
	if t := p.Tombstone; t != nil {
		r.Tombstone = &stele.Tombstone{Reason: t.Reason, At: plainTime(t.At)}
		if t.Replacement != "" {
			if r.Tombstone.Replacement, err = s.Parse(t.Replacement); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

func (p plainTarget) target() stele.Target {
	t := stele.Target{Service: stele.Service(p.Service), URL: p.URL, Type: p.Type, Language: p.Language, Order: 100, Preference: 10, TTL: p.TTL, Status: p.Status, Partial: p.Partial}
	if p.Service == "" {
		t.Service = stele.N2L
	}
	if p.Order != nil {
		t.Order = *p.Order
	}
	if p.Preference != nil {
		t.Preference = *p.Preference
	}
	return t
}

func (p plainValue) value() stele.HandleValue {
	v := stele.HandleValue{Index: p.Index, Type: p.Type, Data: p.Data, TTLAbsolute: p.TTLAbsolute, Permissions: 0b1110}
	switch {
	case p.TTL != nil:
		v.TTL = *p.TTL
	case !p.TTLAbsolute:
		v.TTL = 86400
	}
	if p.Timestamp != "" {
		v.Timestamp = uint32(plainTime(p.Timestamp).Unix())
	}
	if p.Permissions != nil {
		v.Permissions = 0
		for _, name := range *p.Permissions {
			v.Permissions |= 1 << slices.Index([]string{"public-write", "public-read", "admin-write", "admin-read"}, name)
		}
	}
	for _, ref := range p.References {
		v.References = append(v.References, stele.HandleReference{Handle: ref.Handle, Index: ref.Index})
	}
	return v
}

func plainTime(text string) time.Time {
	t, _ := time.Parse(time.RFC3339, text)
	return t.UTC()
}

// The shape of documents, for a judge that knows nothing of the reader: text is a
// string, a number is the limit of whole numbers, a list has its item's shape, and
// an object has its members'; the member "" stands for all names.
type (
	shapeText   struct{}
	shapeFlag   struct{}
	shapeNumber uint64
	shapeList   struct{ item any }
	shapeObject map[string]any
)

var recordShape = shapeObject{
	"id": shapeText{}, "spelling": shapeText{}, "aliases": shapeList{shapeText{}}, "state": shapeText{}, "url": shapeText{},
	"tombstone": shapeObject{"reason": shapeText{}, "at": shapeText{}, "replacement": shapeText{}},
	"targets": shapeList{shapeObject{
		"service": shapeText{}, "url": shapeText{}, "type": shapeText{}, "language": shapeText{}, "order": shapeNumber(65535),
		"preference": shapeNumber(65535), "ttl": shapeNumber(1<<32 - 1), "status": shapeNumber(999), "partial": shapeFlag{},
	}},
	"metadata":    shapeObject{"": shapeText{}},
	"persistence": shapeObject{"level": shapeText{}, "until": shapeText{}, "statement": shapeText{}},
	"values": shapeList{shapeObject{
		"index": shapeNumber(1<<32 - 1), "type": shapeText{}, "data": shapeText{}, "ttl": shapeNumber(1<<32 - 1), "ttlAbsolute": shapeFlag{},
		"timestamp": shapeText{}, "permissions": shapeList{shapeText{}},
		"references": shapeList{shapeObject{"handle": shapeText{}, "index": shapeNumber(1<<32 - 1)}},
	}},
	"readers": shapeList{shapeText{}}, "version": shapeNumber(1<<64 - 1), "created": shapeText{}, "modified": shapeText{},
	"by": shapeText{}, "redacted": shapeFlag{},
}

// hasShape judges a JSON text by encoding/json's tokens.
func hasShape(text string, shape any) bool {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if !valueHasShape(d, shape) {
		return false
	}
	_, err := d.Token()
	return err == io.EOF
}

func valueHasShape(d *json.Decoder, shape any) bool {
	token, err := d.Token()
	if err != nil {
		return false
	}
	switch s := shape.(type) {
	case shapeText:
		_, ok := token.(string)
		return ok
	case shapeFlag:
		_, ok := token.(bool)
		return ok
	case shapeNumber:
		n, ok := token.(json.Number)
		var v uint64
		_, err := fmt.Sscanf(n.String(), "%d", &v)
		return ok && err == nil && v <= uint64(s) && fmt.Sprint(v) == n.String()
	case shapeList:
		for ok := token == json.Delim('['); d.More(); {
			if ok = ok && valueHasShape(d, s.item); !ok {
				return false
			}
		}
		end, err := d.Token()
		return token == json.Delim('[') && err == nil && end == json.Delim(']')
	case shapeObject:
		return token == json.Delim('{') && membersHaveShape(d, s)
	}
	return false
}

func membersHaveShape(d *json.Decoder, members shapeObject) bool {
	seen := make(map[string]bool)
	for d.More() {
		token, err := d.Token()
		name, ok := token.(string)
		if err != nil || !ok || seen[name] {
			return false
		}
		seen[name] = true
		shape, ok := members[name]
		if !ok || name == "" {
			shape, ok = members[""]
		}
		if !ok || !valueHasShape(d, shape) {
			return false
		}
	}
	_, err := d.Token()
	return err == nil
}
