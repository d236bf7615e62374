"""What `tidegate simulate` says of a run: in words, in a terminal, as a page. The run itself is native.

Nothing here is imported by `import tidegate`.
"""
