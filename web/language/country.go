package language

import (
	"golang.org/x/text/language"
	"golang.org/x/text/language/display"
)

// Country returns the name of a country that is given by two letters (ISO 3166-1): what stands for none, and what is not known, stays as it is.
func (l *Language) Country(code string) string { return CountryIn(l.Tag, code) }

// CountryIn is [Language.Country] for programs that have no pages: the tag is that of a language.
func CountryIn(tag, code string) string {
	region, err := language.ParseRegion(code)
	if err != nil || len(code) != 2 || !region.IsCountry() {
		return code
	}
	if names := display.Regions(language.Make(tag)); names != nil {
		if name := names.Name(region); name != "" {
			return name
		}
	}
	return code
}
