package config

import (
	"net/url"
	"strconv"

	"github.com/stele-id/stele"
)

var (
	collectorKind = kind{"URL", textForm, orNothing(readCollector)}
	shareKind     = kind{"share", textForm, readShare}
)

// readCollector reads the URL of a collector. It has the path of OTLP if none is written.
func readCollector(_ *Setting, text string) (any, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.Fragment != "" {
		return nil, stele.Messagef("config.collector-invalid", `"{url}" is not the address of a collector; write one such as http://127.0.0.1:4318/v1/traces`, text)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	return u.String(), nil
}

// readShare reads a number from 0 to 1.
func readShare(_ *Setting, text string) (any, error) {
	share, err := strconv.ParseFloat(text, 64)
	if err != nil || !(share >= 0 && share <= 1) {
		return nil, stele.Messagef("config.share-invalid", `"{value}" is not a share; write a number from 0 to 1, such as 0.1 for a tenth`, text)
	}
	return share, nil
}
