package harvest_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/harvest"
)

// canned answers every request in the same way.
type canned string

func (c canned) Do(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/xml"}}, Body: io.NopCloser(strings.NewReader(string(c))), Request: r}, nil
}

// envelope puts a record into an answer.
func envelope(metadata string) string {
	return `<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><responseDate>2026-06-01T12:00:00Z</responseDate><ListRecords><record><header><identifier>oai:x:1</identifier>` +
		`<datestamp>2026-06-01</datestamp></header><metadata>` + metadata + `</metadata></record><resumptionToken>t1</resumptionToken></ListRecords></OAI-PMH>`
}

// FuzzPage: whatever a repository answers, what is read of it is within limits, and is text that a record can have.
func FuzzPage(f *testing.F) {
	for _, seed := range []string{
		envelope(`<epicur xmlns="urn:nbn:de:1111-2004033116"><administrative_data><delivery><update_status type="urn_new"/></delivery></administrative_data><record>` +
			`<identifier scheme="urn:nbn:de">urn:nbn:de:gbv:089-3321752945</identifier><resource><identifier scheme="url" role="primary">https://example.org/1</identifier><format scheme="imt">text/html</format></resource></record></epicur>`),
		envelope(`<dc><title>A title</title><title xml:lang="pt">Um título</title><creator>Lima, A.</creator><identifier>doi:10.5072/rivers</identifier><identifier>https://example.org/2</identifier><relation>x</relation></dc>`),
		envelope(`<oai_datacite><payload><resource><identifier identifierType="DOI">10.5072/rivers</identifier><creators><creator><creatorName>Lima, A.</creatorName><affiliation>INPE</affiliation></creator></creators>` +
			`<titles><title>Rivers</title></titles><publicationYear>2020</publicationYear><resourceType resourceTypeGeneral="Text">x</resourceType><alternateIdentifiers><alternateIdentifier>https://example.org/3</alternateIdentifier></alternateIdentifiers></resource></payload></oai_datacite>`),
		`<OAI-PMH><error code="noRecordsMatch">nothing</error></OAI-PMH>`, `<OAI-PMH><error code="badResumptionToken"/></OAI-PMH>`, `<OAI-PMH><ListRecords><record/></ListRecords></OAI-PMH>`,
		`<OAI-PMH><ListRecords><record><header status="deleted"><identifier>oai:x:2</identifier></header></record></ListRecords></OAI-PMH>`, `<OAI-PMH>`, `<html/>`, ``,
	} {
		for i := range harvest.Formats() {
			f.Add(seed, i)
		}
	}
	f.Fuzz(func(t *testing.T, body string, format int) {
		formats := harvest.Formats()
		if format < 0 || format >= len(formats) {
			return
		}
		c := &harvest.Client{HTTP: canned(body), Now: time.Now, Wait: func(context.Context, time.Duration) error { return nil }}
		p, err := c.Page(t.Context(), harvest.Source{URL: "https://example.org/oai", Format: formats[format]}, "")
		if err != nil {
			if k := stele.KindOf(err); k != stele.Invalid && k != stele.Conflict && k != stele.Unavailable {
				t.Errorf("an answer that is wrong is %s: %v", k, err)
			}
			return
		}
		for _, item := range p.Items {
			if len(item.Names) > 100 || len(item.Links) > 100 {
				t.Errorf("%d names, %d addresses", len(item.Names), len(item.Links))
			}
			for name, text := range item.Metadata {
				if name == "" || len(text) > stele.MaxProse || !utf8.ValidString(text) || stele.CheckText("", text) != nil {
					t.Errorf("the field %q is %q", name, text)
				}
			}
		}
	})
}
