"""``manage.py demo``: a few seconds in the life of the shop, and proof that they went well.

``script`` says what happens, ``cast`` who takes part, ``story`` what was asked for, ``evidence`` what is found in
tables and files afterwards, ``checks`` whether the two agree.
"""
