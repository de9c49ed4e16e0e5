"""Sources of capture bytes: files, directories, standard input, interfaces."""
