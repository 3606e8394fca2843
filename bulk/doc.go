// Package bulk has what goes between records and the files that people have: rows of CSV
// in the encodings and with the headers of spreadsheets, and rows that lose nothing when
// they are exported and imported again. It reads and writes texts only; it opens no file
// and knows no registry.
package bulk
