package foreign_test

import (
	"strings"
	"testing"

	"github.com/stele-id/stele/bulk/foreign"
)

// TestAuto: the beginning of a file says which system it comes from, and one that could be several systems'
// is refused.
func TestAuto(t *testing.T) {
	for _, tt := range []struct{ text, system, format string }{
		{"VERSION=3\nformat=print\ntype=hash\nHEADER=END\n :/oacounter\n 3\nDATA=END\n", "noid", "db_dump"},
		{"VERSION=3\nformat=bytevalue\ntype=btree\nHEADER=END\n 32302e3530302e312f61\n 00\nDATA=END\n", "handle", "dump"},
		{`{"data":[{"id":"10.5072/a","type":"dois","attributes":{"doi":"10.5072/a","url":"https://example.org/"}}]}`, "datacite", "json"},
		{"# line 1: it was wrong\n" + `{"doi":"10.5072/a","titles":[]}`, "datacite", "jsonl"},
		{`<?xml version="1.0"?><doi_batch xmlns="http://www.crossref.org/schema/5.3.0"><head/>`, "crossref", "xml"},
		{`{"items":[{"DOI":"10.5072/a","URL":"https://doi.org/10.5072/a"}]}`, "crossref", "json"},
		{"; a remark\n$ORIGIN example.org.\n@ SOA a b 1 2 3 4 5\n", "zone", "zone"},
		{`{"homedPrefixes":["0.NA/20.500.1"],"handleRecords":{}}`, "handle", "json"},
		{"CREATE 20.500.1/a\n1 URL 86400 1110 UTF8 https://example.org/\n", "handle", "batch"},
		{"-- PostgreSQL database dump\nCREATE TABLE handles (handle bytea);\n", "handle", "sql"},
		{"13030/f54x54g11\t:/c: i|20240102030405|me/here|1\n", "noid", "dbinfo"},
		{"ark,naan_id,shoulder,assigned_name,url\n", "arklet", "csv"},
		{"--\n-- PostgreSQL database dump\n--\nCREATE TABLE public.ark_ark (\n", "arklet", "sql"},
		{":: ark:/99999/fk4\n_status: public\n", "ezid", "anvl"},
		{"_id,_target\n", "ezid", "csv"},
		{"<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<records><record identifier=\"ark:/99999/a\">", "ezid", "xml"},
		{"Long URL;Tags;Domain;Short code;Title\n", "shlink", "csv"},
		{"\"keyword\",\"url\",\"title\",\"timestamp\",\"ip\",\"clicks\"\n", "yourls", "csv"},
		{"address,target,visit_count\n", "kutt", "csv"},
		{`{"limit":10,"data":[{"address":"a","target":"https://example.org/","visit_count":1}]}`, "kutt", "json"},
		{`{"name":"/dc","created":"2009-07-22 17:44:37","purls":[]}`, "purl.org", "json"},
		{`{"history":[{"name":"/dc/a","type":"302","modtime":"2009-07-22 17:44:37"}]}`, "purl.org", "json"},
		{"<?xml version=\"1.0\"?>\n<purls><purl id=\"/a/b\"/></purls>", "purlz", "xml"},
		{"domain,id,target\na,b,https://example.org/\n", "purlz", "csv"},
		{"# Contact: Ana\nOptions +FollowSymLinks\nRewriteEngine on\n", "w3id", "htaccess"},
		{"Redirect 302 /a/b https://example.org/\n", "w3id", "htaccess"},
		{string(packed(t, map[string]string{"a/.htaccess": "RewriteEngine on\n"})), "w3id", "tar"},
		{"# PURLs\n\nidspace: CHEBI\nbase_url: /obo/chebi\n", "obo", "yaml"},
		{string(packed(t, map[string]string{"config/a.yml": "idspace: A\n"})), "obo", "tar"},
	} {
		s, err := foreign.Open(opened(t, []byte(tt.text)), foreign.Options{System: "auto", Schemes: known})
		if err != nil {
			t.Errorf("%q: %v", tt.text, err)
			continue
		}
		if s.System().Name != tt.system || string(s.Kinds()[0]) != tt.format {
			t.Errorf("%q is of %s, %s, want %s, %s", tt.text, s.System().Name, s.Kinds()[0], tt.system, tt.format)
		}
	}
	for _, text := range []string{"", `{"a":1}`, "-- a dump\nCREATE TABLE x (y int);\n", "\x00\x01"} {
		if _, err := foreign.Open(opened(t, []byte(text)), foreign.Options{System: "auto", Schemes: known}); err == nil || !strings.Contains(err.Error(), "name the system with --from") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
