// Package webrules reads the redirects of web servers, which are lists of regular expressions of which the first that
// matches answers, and says the same by records and by rules of a namespace: [Parse] reads .htaccess files of Apache
// httpd, and [Compile] turns the directives of a folder into what a registry has.
//
// A registry looks for a record first, then for a rule, and then for a partial record; it does not know the order of
// the file. So a record has what the whole file answers for its name, and a rule what the whole file answers for
// all of its names. Whether two expressions match the same names is computed, not guessed. What can't be said exactly is refused,
// with line and reason, and so is what a refused directive would have answered first.
//
// The package computes: it opens no file, and knows no store.
package webrules
